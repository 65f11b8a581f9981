/**
 * `<signalbox-task-history task-id>`: what was recorded of one task, for everybody who can read it. Asked for when somebody opens
 * it: it is a look back, and the task's own page tells what happens now.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { auditActor, auditWords } from '../../domain/audit-words.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { taskAuditQuestion } from '../pages/audit-data.ts'
import { namesFrom } from '../pages/audit-rows.ts'
import { sheet } from './sheet.ts'

export class SignalboxTaskHistory extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    taskId: { attribute: 'task-id' },
    _open: { state: true },
  }
  static override styles = [
    sheet,
    css`
      summary {
        font-size: var(--sb-text-s);
        font-weight: 560;
        color: var(--sb-text-2);
      }
      ol,
      p {
        margin-top: 8px;
      }
      ol {
        display: grid;
        gap: 8px;
      }
      li {
        overflow-wrap: anywhere;
      }
      time {
        display: block;
        font-size: var(--sb-text-xs);
      }
    `,
  ]
  declare app: App
  declare taskId: string
  declare _open: boolean
  #records = new Query(this, () =>
    this._open ? { queries: this.app.queries, question: taskAuditQuestion(this.taskId) } : undefined,
  )

  constructor() {
    super()
    this._open = false
  }

  override render(): TemplateResult {
    return html`<details
      @toggle=${(event: Event & { currentTarget: HTMLDetailsElement }) => {
        this._open = event.currentTarget.open
      }}
    >
      <summary>Audit history</summary>
      ${this._open ? this.#list() : nothing}
    </details>`
  }

  #list(): TemplateResult {
    const { data, fault } = this.#records.answer
    if (!data) return html`<p class="faint" role="status">${fault ? fault.message : 'Reading…'}</p>`
    if (data.entries.length === 0) return html`<p class="faint">Nothing is recorded of this task.</p>`
    const names = { ...namesFrom([data], undefined), agent: () => data.context[this.taskId]?.agentName }
    return html`<ol>
        ${data.entries.map(
          (record) =>
            html`<li>
              <b>${auditActor(record, names)}</b> ${auditWords(record, names)}
              <time class="faint num" datetime=${record.at}>${this.app.format.full(record.at)}</time>
            </li>`,
        )}
      </ol>
      ${data.next === null ? nothing : html`<p class="faint">Older records are in the audit trail.</p>`}`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-task-history': SignalboxTaskHistory
  }
}
