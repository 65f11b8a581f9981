/**
 * `<signalbox-task task-id>`: one task: header, conversation, the column beside it, what stands in its way, and where to answer.
 * Owns following the task while it is shown; what each part shows is transcript.ts, task-troubles.ts and task-side.ts.
 */
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { isTerminal, type TaskArtifact, type TaskView } from '../../domain/task.ts'
import { type App, sessionQuestion } from '../app.ts'
import { Again } from '../controllers/again.ts'
import { Clock } from '../controllers/clock.ts'
import { Follow } from '../controllers/follow.ts'
import { KeepFocus } from '../controllers/keep-focus.ts'
import { Query } from '../controllers/query.ts'
import { Select } from '../controllers/select.ts'
import { SendAgain } from '../controllers/send-again.ts'
import { StayAtEnd } from '../controllers/stay-at-end.ts'
import { TaskAgent } from '../controllers/task-agent.ts'
import { TaskCommands } from '../controllers/task-commands.ts'
import { SignalboxArtifact } from '../elements/artifact-dialog.ts'
import { SignalboxCancelTask } from '../elements/cancel-task.ts'
import { agentRemoved, readersRead, scopeOfTask, SignalboxComposer, viewersRead } from '../elements/composer.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { SignalboxJson } from '../elements/json-view.ts'
import '../elements/not-there.ts'
import { sheet } from '../elements/sheet.ts'
import { SignalboxTaskHistory } from '../elements/task-history.ts'
import { define, View, viewProperties } from '../elements/view.ts'
import { plural } from '../format.ts'
import type { Binding } from '../keys.ts'
import { commandQuestion, taskQuestion } from '../questions.ts'
import type { Question } from '../queries.ts'
import { TaskActorsAnswer } from '../../domain/task-actors.ts'
import type { Phase, Sending, Target } from '../sending.ts'
import { agentMark, chip, commandMarks, taskMark } from '../states.ts'
import type { TraceEvent } from '../task-stream.ts'
import { isTraceArtifact, tellsTrace } from '../traces.ts'
import { explanationSheet } from './explanation-view.ts'
import { taskDrawings } from './task-icons.ts'
import { taskSide } from './task-side.ts'
import { taskSheet } from './task-sheet.ts'
import { taskTroubles } from './task-troubles.ts'
import { type Pending, transcript } from './transcript.ts'
import { transcriptSheet } from './transcript-sheet.ts'

define('signalbox-json', SignalboxJson)
define('signalbox-composer', SignalboxComposer)
define('signalbox-cancel-task', SignalboxCancelTask)
define('signalbox-artifact', SignalboxArtifact)
define('signalbox-task-history', SignalboxTaskHistory)

const followersQuestion = (taskId: string): Question<TaskActorsAnswer> => ({
  path: `/api/task-actors/${encodeURIComponent(taskId)}`,
  schema: TaskActorsAnswer,
  freshness: 'steady',
})

const sideKey = 'signalbox.task-side'
type Side = 'auto' | 'open' | 'closed'

export class SignalboxTask extends View {
  static override properties: PropertyDeclarations = {
    ...viewProperties,
    taskId: { attribute: 'task-id' },
    _artifactId: { state: true },
    _debug: { state: true },
    _side: { state: true },
  }
  static override styles = [sheet, explanationSheet, transcriptSheet, taskSheet]
  /** The console's own id of the task, a UUID. */
  declare taskId: string
  declare _artifactId: string | undefined
  declare _debug: boolean
  declare _side: Side
  #task = new Query(this, () => this.app && { queries: this.app.queries, question: taskQuestion(this.taskId) })
  /** Asked for by itself: while the task's own stream feeds the view, nothing refetches that. */
  #followers = new Query(this, () => {
    const known = this.#view !== undefined && this.#view.kind === 'task'
    return this.app && known ? { queries: this.app.queries, question: followersQuestion(this.taskId) } : undefined
  })
  #commands = new TaskCommands(this, () =>
    this.app && this.#view?.kind === 'task' ? { app: this.app, localId: this.taskId } : undefined,
  )
  #agent = new TaskAgent(
    this,
    () => this.app,
    () => this.#view,
  )
  #session = new Query(this, () => this.app && { queries: this.app.queries, question: sessionQuestion })
  #phase = new Select<Phase, Phase>(
    this,
    () => this.#sending?.phase,
    (phase) => phase,
  )
  #streaming = new Select(
    this,
    () => this.#sending?.streaming,
    (streaming) => streaming,
  )
  #command = new Query(this, () => {
    const phase = this.#phase.value
    if (!this.app || phase?.at !== 'accepted') return undefined
    return { queries: this.app.queries, question: commandQuestion(phase.commandId) }
  })
  #trace = new Select<readonly TraceEvent[], readonly TraceEvent[]>(
    this,
    () => this.app?.traces.of(this.taskId),
    (events) => events,
  )
  #again = new SendAgain(
    this,
    () => this.app,
    () => this.#composer,
    () => this.#view?.skillId ?? null,
  )
  #end = new StayAtEnd(this, '.conversation, .growing')
  #commandId: string | undefined
  #stopKeys: (() => void) | undefined

  constructor() {
    super()
    this.taskId = ''
    this._artifactId = undefined
    this._debug = false
    const kept = localStorage.getItem(sideKey)
    this._side = kept === 'open' || kept === 'closed' ? kept : 'auto'
    new Clock(this)
    new KeepFocus(this)
    new Again(
      this,
      () => this.app,
      () => {
        // Who followed it to its end has nothing more to tell.
        const over = this.#followers.data?.actors.some(
          ({ actor }) => actor.kind === 'subscription' && actor.status === 'done',
        )
        if (over !== true) this.#followers.refresh()
      },
    )
    new Follow(this, () => {
      const task = this.#view
      // A stream is for whoever may act; everybody else hears that something changed, and asks again.
      if (!this.app || !task || this.#closed !== '') return undefined
      const recall = tellsTrace(this.#agent.card) && this.#trace.value?.length === 0
      return { app: this.app, task, elsewhere: this.#streaming.value === true, recall }
    })
  }

  override connectedCallback(): void {
    super.connectedCallback()
    const bindings: Binding[] = [
      { keys: 'r', label: 'Write a message', group: 'This page', run: () => this.#composer?.focus() },
      { keys: 'x', label: 'Cancel the task…', group: 'This page', run: () => this.#askToCancel() },
      { keys: ']', label: 'Hide or show details', group: 'This page', run: () => this.#toggleSide() },
    ]
    this.#stopKeys = this.app?.keys.add(bindings)
  }

  override disconnectedCallback(): void {
    this.#stopKeys?.()
    super.disconnectedCallback()
  }

  protected override get startPath(): string {
    return `/tasks/${this.taskId}`
  }

  get #view(): TaskView | undefined {
    return this.#task.data?.task
  }

  get #sending(): Sending | undefined {
    return this.taskId === '' ? undefined : this.app?.sendings.of(scopeOfTask(this.taskId))
  }

  get #composer(): SignalboxComposer | null {
    const composer = this.renderRoot.querySelector('signalbox-composer')
    return composer instanceof SignalboxComposer ? composer : null
  }

  #askToCancel(): void | false {
    const cancel = this.renderRoot.querySelector('signalbox-cancel-task')
    if (!(cancel instanceof SignalboxCancelTask)) return false
    cancel.ask()
  }

  #toggleSide(): void {
    const shown = this.renderRoot.querySelector('.side')?.checkVisibility() === true
    this._side = shown ? 'closed' : 'open'
    localStorage.setItem(sideKey, this._side)
  }

  override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed)
    if (changed.has('taskId')) {
      this.#end.restart()
      this.#commandId = undefined
      this._artifactId = undefined
      this.#again.forget()
    }
    const phase = this.#phase.value
    if (phase?.at === 'accepted') this.#commandId = phase.commandId
    this.#again.heard(phase?.at === 'accepted' ? phase.commandId : undefined)
  }

  override updated(): void {
    const composer = this.#composer
    if (this.app && composer && this.app.arrival === this.taskId) {
      this.app.arrival = null
      composer.focus()
    }
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    if (!app) return nothing
    const { data, fault } = this.#task.answer
    const retry = (): void => this.#task.refresh()
    if (!data && fault?.status === 404)
      return html`<signalbox-not-there
        .app=${app}
        what="task"
        why="It may belong to an agent you cannot see."
        path="/tasks"
        way="Back to the list"
      ></signalbox-not-there>`
    if (!data) return fault ? failure(fault, retry) : skeleton(4, 'page')
    const { card } = this.#agent
    const task = tellsTrace(card) ? withoutTrace(data.task) : data.task
    return html`${this.#header(app, task)}
      <div class="columns ${this._side}">
        <div class="left">
          <div class="conversation scroll" tabindex="0" role="region" aria-label="Conversation">
            <div class="in">
              ${fault ? staleNotice(fault, retry) : nothing}
              ${transcript(task, {
                app,
                person: this.#person,
                pending: this.#pending,
                open: (artifact) => {
                  this._artifactId = artifact.artifactId
                },
              })}
            </div>
          </div>
          <div class="foot" @settled=${(event: CustomEvent<string>) => this.#settled(event.detail)}>
            ${taskTroubles({
              app,
              localId: task.localId,
              commands: this.#commands.shown(data.commands),
              followers: this.#followers.data,
              operable: this.#unentitled === '',
              sendable: this.#closed === '',
              toldElsewhere: this.#phase.value?.at === 'accepted' ? this.#commandId : undefined,
            })}
            ${this.#foot(app, task)}
          </div>
        </div>
        <aside class="side scroll" tabindex="0" aria-label="Details">
          ${taskSide(task, {
            app,
            card,
            trace: this.#trace.value ?? [],
            debug: this._debug,
            toggleDebug: () => {
              this._debug = !this._debug
            },
            followers: this.#followers.answer,
            commandId: this.#commandId,
          })}
        </aside>
      </div>
      ${this.#artifact(app, task)}`
  }

  /** The focus stays on the page when the trouble goes. */
  #settled(commandId: string): void {
    this.#commands.settled(commandId)
    this.#composer?.focus()
  }

  /** Messages carry no author, so on a console of several people they are "Operator". */
  get #person(): string {
    const session = this.#session.data
    return session?.mode === 'development' ? session.user.displayName : 'Operator'
  }

  get #pending(): Pending | undefined {
    const phase = this.#phase.value
    if (phase?.at !== 'accepted') return undefined
    const status = this.#command.data?.command.status ?? 'pending'
    if (status === 'failed' || status === 'uncertain') return undefined
    return { text: phase.attempt.text, messageId: phase.attempt.messageId, standing: commandMarks[status].word }
  }

  #header(app: App, task: TaskView): TemplateResult {
    const agent = `/agents/${task.agentId}`
    return html`<header class="head">
      <div class="row crumb">
        ${
          this.standsAlone
            ? nothing
            : html`<a
                class="back button ghost small"
                href=${app.router.href('/tasks')}
                data-route="/tasks"
                aria-label="Back to the list"
                >${icon('arrow-left', 14)}</a
              >`
        }
        ${agentMark()}
        <a href=${app.router.href(agent)} data-route=${agent} class="ell"><bdi>${task.agentName}</bdi></a>
        <span class="faint" aria-hidden="true">/</span>
        <bdi class="mono faint ell grow">${task.taskId ?? 'direct reply'}</bdi>
        <button
          class="ghost small icon-only"
          aria-label="Hide or show details"
          title="Details (])"
          @click=${() => this.#toggleSide()}
        >
          ${icon(taskDrawings['panel-right'], 15)}
        </button>
      </div>
      <h1 class="h-xl"><bdi>${task.title || 'Untitled task'}</bdi></h1>
      <p class="row chips" role="status">
        ${chip(taskMark(task.state))}
        ${task.artifacts.length > 0 ? html`<span class="chip line">${plural(task.artifacts.length, 'artifact')}</span>` : nothing}
        ${task.tenant ? html`<bdi class="chip line">${task.tenant}</bdi>` : nothing}
      </p>
    </header>`
  }

  /** Why nobody, or not this person, can answer here; empty where they can. */
  get #closed(): string {
    return this.#agent.isRemoved ? agentRemoved : this.#unentitled
  }

  get #unentitled(): string {
    if (this.#session.data?.user.role === 'viewer') return viewersRead
    return this.#task.data?.operable === false ? readersRead : ''
  }

  #foot(app: App, task: TaskView): TemplateResult {
    const over = task.kind === 'task' && isTerminal(task.state)
    const closed = this.#closed
    return html`${this.#again.notice(targetOf(task))}<signalbox-composer
        .app=${app}
        scope=${scopeOfTask(task.localId)}
        .target=${targetOf(task)}
        .caution=${this.#again.caution}
        .replacing=${this.#again.replacing}
        hint=${hintFor(task)}
        closed=${closed}
        @leave=${() => this.renderRoot.querySelector<HTMLElement>('.conversation')?.focus()}
      >
        ${
          over || closed !== '' || task.taskId === null
            ? nothing
            : html`<signalbox-cancel-task slot="actions" .app=${app} .task=${task}></signalbox-cancel-task>`
        }
      </signalbox-composer>`
  }

  #artifact(app: App, task: TaskView): TemplateResult | typeof nothing {
    const artifact: TaskArtifact | undefined = task.artifacts.find(({ artifactId }) => artifactId === this._artifactId)
    if (!artifact) return nothing
    const close = (): void => {
      this._artifactId = undefined
    }
    return html`<signalbox-artifact .app=${app} .artifact=${artifact} @close=${close}></signalbox-artifact>`
  }
}

const withoutTrace = (task: TaskView): TaskView => ({
  ...task,
  artifacts: task.artifacts.filter((artifact) => !isTraceArtifact(artifact)),
})

/** A finished task takes no more messages [A2A 1.0, 3.1.1], so the next one starts a task in the same context. */
function targetOf(task: TaskView): Target {
  const base = { agentId: task.agentId, tenant: task.tenant }
  const { taskId, contextId, skillId, state } = task
  if (taskId !== null && !isTerminal(state)) return { ...base, taskId }
  // What stays within a skill begins a context of its own.
  if (skillId !== null) return { ...base, skillId }
  return contextId === null ? base : { ...base, contextId }
}

function hintFor(task: TaskView): string {
  if (task.state === 'TASK_STATE_INPUT_REQUIRED') return `Answer ${task.agentName}`
  if (task.state === 'TASK_STATE_AUTH_REQUIRED') return `${task.agentName} waits for a sign-in outside this console`
  if (isTerminal(task.state)) return `Continue with ${task.agentName}, as a new task`
  return `Write to ${task.agentName}`
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-task': SignalboxTask
  }
}
