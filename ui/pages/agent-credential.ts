/** `<signalbox-agent-credential agent-id>`: how an agent is called, for administrators: a credential's facts, never the secret. */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { sheet } from '../elements/sheet.ts'
import { accessQuestion } from './access-data.ts'
import { commandLine, credentialFacts, rotateLine } from './access-people.ts'
import { accessSheet } from './access-sheet.ts'

export class SignalboxAgentCredential extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false }, agentId: { attribute: 'agent-id' } }
  static override styles = [
    sheet,
    accessSheet,
    css`
      section {
        display: grid;
        gap: 10px;
      }
      .card {
        display: grid;
        gap: 10px;
        padding: 14px 16px;
      }
    `,
  ]
  declare app: App
  declare agentId: string
  #record = new Query(this, () => ({ queries: this.app.queries, question: accessQuestion }))

  override render(): TemplateResult | typeof nothing {
    const { data, fault } = this.#record.answer
    if (!data && !fault) return nothing
    const stored = data?.credentials.find(({ agentId }) => agentId === this.agentId)
    return html`<section aria-labelledby="credential">
      <h2 class="label" id="credential">Credential</h2>
      <div class="card">
        ${
          fault && !data
            ? html`<p class="muted">It could not be read whether there is one: ${fault.message}</p>`
            : stored
              ? credentialFacts(stored, this.app)
              : html`<p class="muted">None is stored: this agent is called without one.</p>`
        }
        <p class="muted">
          ${stored?.enabled ? 'This stores another one in its place' : 'This stores one'}, where the console runs; the
          binding is read from a file and nobody can read it back.
          ${
            stored?.enabled
              ? html`Add <span class="mono">--action revoke</span> instead of the file to take it away.`
              : nothing
          }
        </p>
        ${commandLine(rotateLine(this.agentId))}
      </div>
    </section>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-agent-credential': SignalboxAgentCredential
  }
}
