/**
 * `<signalbox-tasks>`: the list of tasks beside the one that is open. Owns the list pane: filters, rows, what is new, and which
 * task is selected. The task itself is task.ts, a new one is new-task.ts.
 */
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { TaskFilter, TaskRow } from '../../domain/task.ts'
import { type App, sessionQuestion } from '../app.ts'
import { Clock } from '../controllers/clock.ts'
import { Lazy } from '../controllers/lazy.ts'
import { KeepFocus } from '../controllers/keep-focus.ts'
import { Query } from '../controllers/query.ts'
import { RowKeys } from '../controllers/rows.ts'
import { Select } from '../controllers/select.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { whenLoaded } from '../elements/not-loaded.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { define, View, viewProperties } from '../elements/view.ts'
import { plural } from '../format.ts'
import type { Binding } from '../keys.ts'
import type { Route } from '../router.ts'
import { taskMark } from '../states.ts'
import { rowLimit, TaskList, type TaskListState } from '../task-list.ts'
import { tasksSheet } from './tasks-sheet.ts'

const loadTask = async (): Promise<void> => define('signalbox-task', (await import('./task.ts')).SignalboxTask)
/** What stands around the rows; these files define their elements themselves. The last one's name tells that all are there. */
const loadBeside = async (): Promise<void> => {
  define('signalbox-under-way', (await import('../elements/sends-under-way.ts')).SignalboxUnderWay)
  await import('./tasks-empty.ts')
  await import('../elements/unsettled-sends.ts')
}
const loadNewTask = async (): Promise<void> =>
  define('signalbox-new-task', (await import('./new-task.ts')).SignalboxNewTask)

/** Ownership comes with its own views; the API's other filters wait for it. */
type Shown = 'all' | 'active' | 'needs-input' | 'done'
const filters: readonly { id: Shown; label: string; key: string }[] = [
  { id: 'all', label: 'All', key: '1' },
  { id: 'active', label: 'Active', key: '2' },
  { id: 'needs-input', label: 'Needs input', key: '3' },
  { id: 'done', label: 'Done', key: '4' },
]

const filterOf = (route: Route | undefined): Shown => {
  const wanted = route?.query.get('filter')
  return filters.find(({ id }) => id === wanted)?.id ?? 'all'
}

const shownFilter = (state: TaskListState | undefined): Shown =>
  filters.find(({ id }) => id === state?.filter)?.id ?? 'all'

const withFilter = (path: string, filter: TaskFilter): string => (filter === 'all' ? path : `${path}?filter=${filter}`)

const paneKey = 'signalbox.task-list'

export class SignalboxTasks extends View {
  static override properties: PropertyDeclarations = { ...viewProperties, _hidden: { state: true } }
  static override styles = [sheet, tasksSheet]
  declare _hidden: boolean
  #list: TaskList | undefined
  #lazy = new Lazy(this)
  #state = new Select<TaskListState, TaskListState>(
    this,
    () => this.#list?.state,
    (state) => state,
  )
  #route = new Select(
    this,
    () => this.app?.router,
    (route) => route,
  )

  #session = new Query(this, () => this.app && { queries: this.app.queries, question: sessionQuestion })

  constructor() {
    super()
    this._hidden = localStorage.getItem(paneKey) === 'hidden'
    new Clock(this)
    new KeepFocus(this, () => this.renderRoot.querySelector<HTMLElement>('.item'))
    new RowKeys(this, '.item', () => this.#bindings())
  }

  protected override get startPath(): string {
    return '/tasks'
  }

  override connectedCallback(): void {
    super.connectedCallback()
    if (this.app) this.#list = new TaskList(this.app)
  }

  override disconnectedCallback(): void {
    this.#list?.close()
    this.#list = undefined
    super.disconnectedCallback()
  }

  #bindings(): Binding[] {
    const go = (path: string): void => this.app?.router.go(path)
    return [
      ...filters.map(({ id, label, key }): Binding => ({
        keys: key,
        label: `Show ${label.toLowerCase()}`,
        group: 'This page',
        run: () => go(withFilter('/tasks', id)),
      })),
      { keys: 'c', label: 'New task', group: 'This page', open: () => !this.#reads, run: () => go('/tasks/new') },
      { keys: 'n', label: 'Show new tasks', group: 'Move', run: () => this.#list?.showArrived() },
      { keys: 'Escape', label: 'Back to the list', group: 'Move', run: () => this.#back() },
      { keys: '[', label: 'Hide or show the list', group: 'This page', run: () => this.#toggleList() },
    ]
  }

  /** Sending is not theirs, so neither is a way to begin. */
  get #reads(): boolean {
    return this.#session.data?.user.role === 'viewer'
  }

  #back(): void | false {
    if (this.#route.value?.page === 'tasks') return false
    const selected = this.#route.value?.params['id']
    this.app?.router.go(withFilter('/tasks', filterOf(this.#route.value)))
    void this.updateComplete.then(() =>
      this.renderRoot.querySelector<HTMLElement>(`[data-id="${selected ?? ''}"]`)?.focus(),
    )
  }

  #toggleList(): void {
    this._hidden = !this._hidden
    localStorage.setItem(paneKey, this._hidden ? 'hidden' : 'shown')
  }

  override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed)
    const route = this.#route.value
    // A new task keeps the list as it was: its own path says nothing about the filter.
    if (route?.page === 'newTask') this.#list?.filter(this.#state.value?.filter ?? 'all')
    else if (route?.page === 'tasks' || route?.page === 'task') this.#list?.filter(filterOf(route))
    const selected = route?.page === 'task' ? route.params['id'] : undefined
    if (selected !== undefined) this.#list?.reveal(selected)
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    const route = this.#route.value
    if (!app || !route) return nothing
    const filter = route.page === 'newTask' ? shownFilter(this.#state.value) : filterOf(route)
    const beside = this.#lazy.ready('signalbox-unsettled', loadBeside)
    const below = (): TemplateResult =>
      html`<signalbox-unfollowed .app=${app}></signalbox-unfollowed
        ><signalbox-unsettled .app=${app}></signalbox-unsettled>`
    const open = route.page === 'task' || route.page === 'newTask'
    return html`<div class=${`panes${open ? ' open' : ''}${this._hidden && open ? ' wide' : ''}`}>
      <section class="list-pane" aria-label="Tasks">
        <header>
          <div class="row top">
            <h1>Tasks</h1>
            <span class="grow"></span>
            ${
              this.#reads
                ? nothing
                : html`<button class="small" title="New task (c)" @click=${() => app.router.go('/tasks/new')}>
                    ${icon('plus', 14)}New task
                  </button>`
            }
          </div>
          <div class="filters" role="group" aria-label="Show">
            ${filters.map(
              ({ id, label }) =>
                html`<button aria-pressed=${filter === id} @click=${() => app.router.go(withFilter('/tasks', id))}>
                  ${label}
                </button>`,
            )}
          </div>
          ${beside ? html`<signalbox-under-way .app=${app}></signalbox-under-way>` : nothing}
        </header>
        <div class="rows scroll">${this.#rows(app, filter, beside)}</div>
        <div class="unsettled">${whenLoaded(this.#lazy, 'signalbox-unsettled', loadBeside, below, 'notice warn')}</div>
        <footer class="row"><kbd>j</kbd><kbd>k</kbd> move <span class="grow"></span><kbd>?</kbd> all keys</footer>
      </section>
      <section class="detail" aria-label="Task">${this.#detail(app, route)}</section>
    </div>`
  }

  #rows(app: App, filter: Shown, beside: boolean): TemplateResult {
    const state = this.#state.value
    const retry = (): void => this.#list?.refresh()
    if (!state?.rows) return state?.fault ? failure(state.fault, retry) : skeleton(7)
    const { rows, arrived, more, fault } = state
    return html`<p class="sr" role="status">${arrived > 0 ? `${plural(arrived, 'new task')}` : ''}</p>
      ${fault ? staleNotice(fault, retry) : nothing}
      ${
        arrived > 0
          ? html`<button class="arrived" title="Show them (n)" @click=${() => this.#list?.showArrived()}>
              ${icon('arrow-right', 13)}${arrived} new. Show ${arrived === 1 ? 'it' : 'them'}
            </button>`
          : nothing
      }
      ${
        rows.length === 0
          ? beside
            ? html`<signalbox-no-tasks .app=${app} .filter=${filter}></signalbox-no-tasks>`
            : nothing
          : html`<ul>
              ${repeat(
                rows,
                ({ localId }) => localId,
                (row) => this.#row(app, row, filter),
              )}
            </ul>`
      }
      ${more ? html`<button class="ghost more" @click=${() => this.#list?.more()}>Load more</button>` : nothing}
      ${rows.length >= rowLimit ? html`<p class="faint end">The newest ${rowLimit} are shown. Use a filter to see others.</p>` : nothing}`
  }

  #row(app: App, row: TaskRow, filter: Shown): TemplateResult {
    const path = withFilter(`/tasks/${row.localId}`, filter)
    const mark = taskMark(row.state)
    const here = this.#route.value?.params['id'] === row.localId
    return html`<li>
      <a
        class="item"
        data-id=${row.localId}
        href=${app.router.href(path)}
        data-route=${path}
        aria-current=${here ? 'true' : nothing}
      >
        <span class=${mark.tone ? `mark tone-${mark.tone}` : 'mark faint'}>${icon(mark.icon)}</span>
        <bdi class="title ell">${row.title || 'Untitled task'}</bdi>
        <span class="age num">${app.format.when(row.updatedAt)}</span>
        <span class="sub"
          ><bdi class="ell">${row.agentName}</bdi
          ><span class=${mark.tone ? `word tone-${mark.tone}` : 'word'}>${mark.word}</span></span
        >
      </a>
    </li>`
  }

  #detail(app: App, route: Route): TemplateResult | typeof nothing {
    if (route.page === 'newTask') {
      const agent = route.query.get('agent') ?? ''
      const draw = (): TemplateResult => html`<signalbox-new-task .app=${app} agent-id=${agent}></signalbox-new-task>`
      return whenLoaded(this.#lazy, 'signalbox-new-task', loadNewTask, draw)
    }
    const id = route.params['id']
    if (route.page === 'task' && id !== undefined) {
      const draw = (): TemplateResult => html`<signalbox-task .app=${app} task-id=${id}></signalbox-task>`
      return whenLoaded(this.#lazy, 'signalbox-task', loadTask, draw)
    }
    return html`<div class="empty">
      ${icon('list-checks', 28)}<b>Nothing selected</b>
      <p>
        <kbd>j</kbd> and <kbd>k</kbd> move through the list,
        <kbd>Enter</kbd> opens${this.#reads ? '.' : html`, <kbd>c</kbd> starts a new task.`}
      </p>
    </div>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-tasks': SignalboxTasks
  }
}
