/**
 * `<signalbox-palette>`: find a page, an agent, a task or a message that made none, or do what a key does. Loaded when first opened.
 * Finds by words anywhere in a name; what can be done is the register of keys, so no key is without a place to be read.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { UnderWayAnswer } from '../../domain/under-way.ts'
import type { App } from '../app.ts'
import { hostOf } from '../card.ts'
import { Query } from '../controllers/query.ts'
import { agentsQuestion } from '../agent-questions.ts'
import { TaskPage, tasksPath } from '../questions.ts'
import { taskMark } from '../states.ts'
import { icon, type IconName } from './icon.ts'
import { openModal } from './modal.ts'
import type { sendQuestions } from './palette-sends.ts'
import { sheet } from './sheet.ts'

interface Item {
  readonly group: string
  readonly icon: IconName
  readonly label: string
  readonly note: string
  readonly keys: string
  readonly run: () => void
}

type Send = Pick<UnderWayAnswer['sends'][number], 'id' | 'action' | 'title' | 'agentName'>

const perGroup = 8
/** The largest page that the server gives. */
const newestTasks = 100
/** A pause in typing that asks the server for what is older, and how little it is not asked for. */
const typingMs = 250
const leastText = 2

export class SignalboxPalette extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    typed: { attribute: false },
    _wanted: { state: true },
    _at: { state: true },
    _asked: { state: true },
  }
  static override styles = [
    sheet,
    css`
      dialog {
        width: min(580px, calc(100vw - 32px));
        margin-top: 12dvh;
        overflow: hidden;
      }
      .top {
        display: flex;
        align-items: center;
        gap: 10px;
        padding: 12px 16px;
        border-bottom: 1px solid var(--sb-border);
        color: var(--sb-text-3);
      }
      input {
        border: 0;
        padding: 0;
        font-size: var(--sb-text-l);
        background: transparent;
      }
      input:focus-visible {
        outline: none;
      }
      [role='listbox'] {
        max-height: min(440px, 60dvh);
        padding: 6px;
      }
      .group {
        padding: 9px 10px 3px;
        font-size: var(--sb-text-xs);
        color: var(--sb-text-3);
      }
      [role='option'] {
        display: flex;
        align-items: center;
        gap: 10px;
        min-height: 34px;
        padding: 0 10px;
        border-radius: var(--sb-radius-m);
      }
      [role='option'] > .icon {
        color: var(--sb-text-3);
      }
      [aria-selected='true'] {
        background: var(--sb-selected);
      }
      .note {
        font-size: var(--sb-text-s);
        color: var(--sb-text-3);
        max-width: 45%;
      }
      .bounds {
        padding: 8px 16px;
        border-top: 1px solid var(--sb-border);
        font-size: var(--sb-text-s);
        color: var(--sb-text-2);
      }
      .none {
        padding: 18px 10px;
        text-align: center;
        color: var(--sb-text-2);
      }
    `,
  ]
  declare app: App
  /** What was typed before this was there to take it. */
  declare typed: string
  declare _wanted: string
  declare _at: number
  /** What is looked for further back: empty while somebody types. */
  declare _asked: string
  #typing: ReturnType<typeof setTimeout> | undefined
  #agents = new Query(this, () => ({ queries: this.app.queries, question: agentsQuestion }))
  #tasks = new Query(this, () => ({
    queries: this.app.queries,
    question: { path: tasksPath('all', newestTasks, 0), schema: TaskPage, freshness: 'live' },
  }))

  /** What was sent and made no task is among no tasks: asked for once there are words to look for in it. */
  #sends: typeof sendQuestions | undefined
  #unsettled = new Query(this, () => this.#sends && { queries: this.app.queries, question: this.#sends.unsettled })
  #underWay = new Query(this, () => this.#sends && { queries: this.app.queries, question: this.#sends.underWay })

  #older = new Query(this, () =>
    this.#sends && this._asked !== ''
      ? { queries: this.app.queries, question: this.#sends.furtherBack(this._asked) }
      : undefined,
  )

  constructor() {
    super()
    this.typed = ''
    this._wanted = ''
    this._at = 0
    this._asked = ''
  }

  override disconnectedCallback(): void {
    clearTimeout(this.#typing)
    super.disconnectedCallback()
  }

  override firstUpdated(): void {
    openModal(this)
    this.renderRoot.querySelector('input')?.focus()
    if (this.typed !== '') this.#typed(this.typed)
  }

  /** Without the code that asks for them, the rest is found all the same; the next letter tries again. */
  async #findSends(): Promise<void> {
    if (this.#sends) return
    this.#sends = await import('./palette-sends.ts').then(
      (loaded) => loaded.sendQuestions,
      () => undefined,
    )
    this.requestUpdate()
  }

  get #items(): Item[] {
    const { app } = this
    const go = (path: string) => (): void => app.router.go(path)
    const doing = app.keys.all.map(({ label, keys, group, withControl, run }): Item => {
      const goes = group === 'Go to'
      const icon: IconName = goes ? 'arrow-right' : 'zap'
      const shown = withControl ? `Ctrl ${keys.toUpperCase()}` : keys
      return { group: goes ? 'Go to' : 'Do', icon, label, note: '', keys: shown, run: () => void run(undefined) }
    })
    const needing: Item = {
      group: 'Go to',
      icon: 'triangle-alert',
      label: 'What needs attention',
      note: 'actors',
      keys: '',
      run: go('/actors?needs=attention'),
    }
    const agents = (this.#agents.data?.agents ?? []).map((agent): Item => ({
      group: 'Agents',
      icon: 'bot',
      keys: '',
      label: agent.name ?? hostOf(agent.cardUrl),
      note: hostOf(agent.cardUrl),
      run: go(`/agents/${agent.id}`),
    }))
    const tasks = (this.#tasks.data?.tasks ?? []).map((task): Item => ({
      group: 'Tasks',
      icon: taskMark(task.state).icon,
      keys: '',
      label: task.title || 'Untitled task',
      note: `${task.agentName}, ${taskMark(task.state).word.toLowerCase()}`,
      run: go(`/tasks/${task.localId}`),
    }))
    const message = (of: Send, standing: string): Item => ({
      group: 'Messages',
      icon: 'reply',
      keys: '',
      label: `${of.action === 'cancelTask' ? 'Cancel: ' : ''}${of.title || 'Without words'}`,
      note: `${of.agentName}, ${standing}`,
      run: go(`/actors/command/${of.id}`),
    })
    const messages = [
      ...(this.#unsettled.data?.sends ?? []).map((send) => message(send, 'needs you')),
      ...(this.#underWay.data?.sends ?? []).map((send) => message(send, this.#sends?.standing(send) ?? '')),
    ]
    const words = this._wanted.toLowerCase().split(/\s+/).filter(Boolean)
    const found = (items: readonly Item[]): Item[] =>
      items
        .filter(({ label, note }) => words.every((word) => `${label} ${note}`.toLowerCase().includes(word)))
        .slice(0, perGroup)
    const goTo = [...doing.filter(({ group }) => group === 'Go to'), needing]
    const toDo = doing.filter(({ group }) => group === 'Do')
    return [
      ...found(goTo),
      ...found(tasks),
      ...(words.length === 0 ? [] : found(messages)),
      ...found(agents),
      ...found(toDo),
      ...this.#furtherBack,
    ]
  }

  /** Last, and what comes later last of all: what somebody is about to choose does not move. */
  get #furtherBack(): Item[] {
    const text = this._wanted.trim()
    const asked = this.#sends
    if (!asked || text.length < leastText) return []
    const tasks = this.#tasks.data?.tasks ?? []
    const sends = [...(this.#unsettled.data?.sends ?? []), ...(this.#underWay.data?.sends ?? [])]
    const shown = new Set([...tasks.flatMap(({ localId, title }) => [localId, title]), ...sends.map(({ id }) => id)])
    const older = text === this._asked ? asked.olderOf(this.#older.data?.actors ?? [], text, shown) : []
    const item = (label: string, note: string, icon: IconName, path: string): Item => ({
      group: 'Further back',
      icon,
      label,
      note,
      keys: '',
      run: () => this.app.router.go(path),
    })
    return [
      item('All actors with these words', 'more of them', 'workflow', asked.everywhere(text)),
      ...older.slice(0, perGroup).map(({ title, note, path }) => item(title, note, 'history', path)),
    ]
  }

  #typed(text: string): void {
    this._wanted = text
    this._at = 0
    this._asked = ''
    clearTimeout(this.#typing)
    this.#typing = setTimeout(() => {
      if (text.trim().length >= leastText) this._asked = text.trim()
    }, typingMs)
    void this.#findSends()
  }

  /** What was looked through: a person who finds nothing here must not take it for all there is. */
  get #bounds(): string {
    const { fault, data } = this.#older.answer
    const further = data
      ? 'Some older ones are found by these words as they stand in a title; Actors has more.'
      : fault
        ? 'Older ones could not be asked for.'
        : 'Looking for older ones…'
    return `Looked through: the newest ${newestTasks} tasks, and of messages that need you or are under way 20 each. ${further}`
  }

  #key(event: KeyboardEvent): void {
    event.stopPropagation()
    const items = this.#items
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      this._at = (this._at + step + items.length) % Math.max(1, items.length)
      void this.updateComplete.then(() =>
        this.renderRoot.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }),
      )
    }
    if (event.key === 'Enter') {
      event.preventDefault()
      this.#take(items[this._at])
    }
  }

  #take(item: Item | undefined): void {
    if (!item) return
    // First closed, so that what it does finds the page as it was, and may move the focus.
    this.renderRoot.querySelector('dialog')?.close()
    item.run()
  }

  override render(): TemplateResult {
    const items = this.#items
    return html`<dialog aria-label="Find or do" @keydown=${(event: KeyboardEvent) => this.#key(event)}>
      <div class="top">
        ${icon('search')}
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant=${items.length > 0 ? `item-${this._at}` : nothing}
          aria-label="Find or do"
          aria-autocomplete="list"
          autocomplete="off"
          spellcheck="false"
          placeholder="A page, a task, a message, an agent, or something to do"
          maxlength="200"
          .value=${this._wanted}
          @input=${(event: Event & { currentTarget: HTMLInputElement }) => this.#typed(event.currentTarget.value)}
        />
        <kbd>Esc</kbd>
      </div>
      <div id="found" role="listbox" class="scroll" aria-label="Found" tabindex="-1">
        ${items.map((item, at) => this.#option(item, at, items[at - 1]?.group))}
      </div>
      ${items.length === 0 ? html`<p class="none" role="status">Nothing found for “${this._wanted}”.</p>` : nothing}
      ${this._wanted.trim().length < leastText ? nothing : html`<p class="bounds">${this.#bounds}</p>`}
    </dialog>`
  }

  #option(item: Item, at: number, groupBefore: string | undefined): TemplateResult {
    return html`${item.group === groupBefore ? nothing : html`<div class="group" role="presentation">${item.group}</div>`}
      <div
        role="option"
        id=${`item-${at}`}
        aria-selected=${at === this._at}
        @click=${() => this.#take(item)}
        @pointermove=${() => {
          this._at = at
        }}
      >
        ${icon(item.icon)}<bdi class="grow ell">${item.label}</bdi
        >${item.note ? html`<bdi class="note ell">${item.note}</bdi>` : nothing}${
          item.keys ? item.keys.split(' ').map((key) => html`<kbd>${key}</kbd>`) : nothing
        }
      </div>`
  }
}
