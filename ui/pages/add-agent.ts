/**
 * `<signalbox-add-agent>`: the dialog that registers an agent by its card's URL. Owns the field, the preview (which registers
 * nothing) and the answer's words. Adding needs no preview: the server takes a URL whose agent is asleep, too.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { type CardUrlFault, parseCardUrl } from '../../domain/agent.ts'
import { refusals } from '../../domain/refusal.ts'
import { faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { readCard } from '../card.ts'
import { icon } from '../elements/icon.ts'
import { keepKeys, openModal } from '../elements/modal.ts'
import { reportView } from '../elements/report.ts'
import { reportSheet } from '../elements/report-sheet.ts'
import { sheet } from '../elements/sheet.ts'
import { plural } from '../format.ts'
import { Preview, Registration } from '../agent-questions.ts'
import { refreshAgents } from '../questions.ts'
import { agentMark } from '../states.ts'

const sentences: Record<CardUrlFault, string> = {
  scheme: refusals['agent.url.scheme'],
  decorated: refusals['agent.url.decorated'],
  length: refusals['agent.url.length'],
}

type Step = 'idle' | 'previewing' | 'adding'

export class SignalboxAddAgent extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    _step: { state: true },
    _fault: { state: true },
    _preview: { state: true },
  }
  static override styles = [
    sheet,
    reportSheet,
    css`
      dialog {
        width: min(600px, calc(100vw - 32px));
        overflow: hidden;
      }
      dialog[open] {
        display: flex;
        flex-direction: column;
      }
      form {
        display: flex;
        flex-direction: column;
        min-height: 0;
      }
      .in {
        display: grid;
        gap: 16px;
        padding: 20px 24px;
        overflow: auto;
      }
      footer {
        display: flex;
        gap: 8px;
        padding: 14px 24px;
        border-top: 1px solid var(--sb-border);
      }
      .card {
        padding: 14px 16px;
        display: grid;
        gap: 14px;
      }
      .card header {
        display: flex;
        gap: 11px;
      }
    `,
  ]
  declare app: App
  declare _step: Step
  declare _fault: string | undefined
  declare _preview: Preview | undefined

  constructor() {
    super()
    this._step = 'idle'
    this._fault = undefined
    this._preview = undefined
  }

  override firstUpdated(): void {
    openModal(this)
    this.#field?.focus()
  }

  get #field(): HTMLInputElement | null {
    return this.renderRoot.querySelector('input')
  }

  /** The URL as typed, or undefined after saying what is wrong with it. */
  #url(): string | undefined {
    const value = this.#field?.value.trim() ?? ''
    const parsed = value === '' ? { sentence: 'Enter the address of an Agent Card.' } : parseCardUrl(value)
    if ('url' in parsed) return value
    this.#fail('fault' in parsed ? sentences[parsed.fault] : parsed.sentence)
    return undefined
  }

  #fail(message: string): void {
    this._fault = message
    this._step = 'idle'
    this.#field?.focus()
  }

  async #look(): Promise<void> {
    const cardUrl = this.#url()
    if (cardUrl === undefined || this._step !== 'idle') return
    this._step = 'previewing'
    this._fault = undefined
    try {
      this._preview = await this.app.api.change('/api/agents/preview', { method: 'POST', body: { cardUrl } }, Preview)
      this._step = 'idle'
    } catch (error) {
      this._preview = undefined
      this.#fail(faultOf(error).message)
    }
  }

  async #submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const cardUrl = this.#url()
    if (cardUrl === undefined || this._step !== 'idle') return
    this._step = 'adding'
    this._fault = undefined
    try {
      const { agent } = await this.app.api.change('/api/agents', { method: 'POST', body: { cardUrl } }, Registration)
      refreshAgents(this.app.queries)
      this.renderRoot.querySelector('dialog')?.close()
      this.app.router.go(`/agents/${agent.id}`)
    } catch (error) {
      this.#fail(faultOf(error).message)
    }
  }

  override render(): TemplateResult {
    const busy = this._step !== 'idle'
    return html`<dialog aria-labelledby="title" @keydown=${keepKeys}>
      <form novalidate @submit=${(event: SubmitEvent) => void this.#submit(event)}>
        <div class="in scroll">
          <h2 id="title" class="h-xl">Add an agent</h2>
          <div class="field">
            <label for="url">Agent Card URL</label>
            <input
              id="url"
              type="url"
              inputmode="url"
              autocomplete="off"
              spellcheck="false"
              placeholder="https://agent.example/.well-known/agent-card.json"
              aria-invalid=${this._fault ? 'true' : nothing}
              aria-describedby=${this._fault ? 'fault' : 'hint'}
              @input=${() => {
                this._fault = undefined
                this._preview = undefined
              }}
            />
            ${
              this._fault
                ? html`<p id="fault" class="fault" role="alert">
                    ${icon('triangle-alert', 14)}<span>${this._fault}</span>
                  </p>`
                : html`<p id="hint" class="faint">The card itself, or the agent's base address.</p>`
            }
          </div>
          ${this._preview ? this.#card(this._preview) : nothing}
        </div>
        <footer>
          <button type="button" ?disabled=${busy} @click=${() => void this.#look()}>
            ${this._step === 'previewing' ? 'Reading the card…' : 'Preview'}
          </button>
          <span class="grow"></span>
          <button type="button" class="ghost" @click=${() => this.renderRoot.querySelector('dialog')?.close()}>
            Close
          </button>
          <button class="primary" ?disabled=${busy}>${this._step === 'adding' ? 'Adding…' : 'Add agent'}</button>
        </footer>
      </form>
    </dialog>`
  }

  #card({ card, resolvedCardUrl, report }: Preview): TemplateResult {
    const facts = readCard(card)
    return html`<section class="card" aria-label="Preview" role="status">
      <header>
        ${agentMark()}
        <div class="grow">
          <b><bdi>${facts?.name ?? 'An agent without a name'}</bdi></b>
          <p class="mono faint ell" title=${resolvedCardUrl}>${resolvedCardUrl}</p>
        </div>
      </header>
      ${facts?.description ? html`<p class="said">${facts.description}</p>` : nothing}
      <p class="muted">
        ${plural(facts?.skills.length ?? 0, 'skill')} · ${plural(facts?.interfaces.length ?? 0, 'interface')} ·
        ${plural(facts?.extensions.length ?? 0, 'extension')}
      </p>
      ${reportView(report)}
    </section>`
  }
}
