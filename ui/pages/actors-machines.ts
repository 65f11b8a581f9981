/** The machines of this build, to be looked at while no actor is chosen: what the console can do, before it has done it. */
import { html, LitElement, nothing, css, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { failure } from '../elements/fetching.ts'
import { sheet } from '../elements/sheet.ts'
import { define } from '../elements/view.ts'
import { plural } from '../format.ts'
import { chip } from '../states.ts'
import { SignalboxStatechart } from '../statechart/statechart.ts'
import { chartQuestion, chartsQuestion, supervisorQuestion } from './actors-questions.ts'

/** @element signalbox-machines */
export class SignalboxMachines extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false }, _kind: { state: true } }
  static override styles = [
    sheet,
    css`
      :host {
        display: flex;
        flex-direction: column;
        height: 100%;
        min-width: 0;
      }
      header {
        display: grid;
        grid-template-columns: minmax(0, 1fr);
        gap: 8px;
        padding: 14px 16px;
        border-bottom: 1px solid var(--sb-border);
      }
      .segments {
        justify-self: start;
        flex-wrap: wrap;
      }
      header .row {
        flex-wrap: wrap;
      }
      signalbox-statechart {
        flex: 1;
        min-height: 0;
      }
    `,
  ]
  declare app: App | undefined
  declare _kind: string | undefined

  readonly #charts = new Query(this, () => this.app && { queries: this.app.queries, question: chartsQuestion })
  readonly #chart = new Query(this, () => {
    const chosen = this.#chosen
    return this.app && chosen && { queries: this.app.queries, question: chartQuestion(chosen.kind, chosen.version) }
  })

  /** The one machine that lives in the process and not in a row: it can be shown where it is, without being chosen. */
  readonly #supervisor = new Query(this, () =>
    this.app && this.#chosen?.kind === 'supervisor'
      ? { queries: this.app.queries, question: supervisorQuestion }
      : undefined,
  )

  constructor() {
    super()
    this._kind = undefined
  }

  get #chosen(): { readonly kind: string; readonly version: string } | undefined {
    const charts = this.#charts.data?.charts ?? []
    return charts.find(({ kind }) => kind === this._kind) ?? charts[0]
  }

  #health(): TemplateResult | typeof nothing {
    const supervisor = this.#supervisor.data?.supervisor
    if (!supervisor) return nothing
    // Of the process that answers alone, and of its loops: no all-clear for what is left to workers.
    if (supervisor.restarts === 0)
      return chip({ icon: 'radio', word: 'Live in this process, nothing restarted', tone: '' })
    const restarts = plural(supervisor.restarts, 'restart')
    return html`${chip({ icon: 'triangle-alert', word: restarts, tone: 'warn' })}
      <span class="muted">${supervisor.lastFailure ?? ''}</span>`
  }

  override render(): TemplateResult {
    const { data, fault } = this.#charts.answer
    if (!data) return html`${fault ? failure(fault, () => this.#charts.refresh()) : nothing}`
    const file = this.#chart.data
    const chosen = this.#chosen
    return html`<header>
        <p class="muted">Choose an actor to see where it is. These are the machines that actors live by.</p>
        <div class="segments" role="group" aria-label="Machine">
          ${data.charts.map(
            ({ kind, states }) =>
              html`<button
                aria-pressed=${kind === chosen?.kind}
                title=${plural(states, 'state')}
                @click=${() => (this._kind = kind)}
              >
                ${kind}
              </button>`,
          )}
        </div>
        <div class="row">
          ${file?.definition.description === undefined ? nothing : html`<p>${file.definition.description}</p>`}
          ${this.#health()}
        </div>
      </header>
      <signalbox-statechart
        .definition=${file?.definition}
        .layout=${file?.layout}
        .value=${this.#supervisor.data?.supervisor.value ?? null}
      ></signalbox-statechart>`
  }
}

define('signalbox-statechart', SignalboxStatechart)
