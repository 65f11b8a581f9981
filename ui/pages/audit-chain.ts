/**
 * `<signalbox-audit-chain>`: how the audit trail's chain stands, what that proves, and taking the trail away as files. Owns saving
 * a CSV of more than one page piece by piece; what a chain proves is docs/adr/0011.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import type { ChainAnswer } from '../../domain/audit.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { plural } from '../format.ts'
import { type AuditFilters, chainFilePath, chainQuestion, csvPath, queryOf } from './audit-data.ts'
import { auditSheet } from './audit-sheet.ts'

/** As many as the server counts. */
const unlinkedCounted = 10_000

export class SignalboxAuditChain extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    filters: { attribute: false },
    _copied: { state: true },
    _saved: { state: true },
    _fault: { state: true },
  }
  static override styles = [sheet, auditSheet]
  declare app: App
  declare filters: AuditFilters
  /** The head that was to be copied, and whether it was: a later one is another. */
  declare _copied: { readonly head: string; readonly done: boolean } | undefined
  /** Files of this selection that were saved, and where the next one begins; null where there is no more. */
  declare _saved: { readonly files: number; readonly next: string | null } | undefined
  declare _fault: ApiFault | undefined
  #chain = new Query(this, () => ({ queries: this.app.queries, question: chainQuestion }))

  constructor() {
    super()
    this._copied = undefined
    this._saved = undefined
    this._fault = undefined
  }

  override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('filters')
    if (before && queryOf(before) !== queryOf(this.filters)) this._saved = undefined
  }

  async #save(): Promise<void> {
    this._fault = undefined
    try {
      const response = await this.app.api.request(csvPath(this.filters, this._saved?.next ?? null), {})
      const files = (this._saved?.files ?? 0) + 1
      offer(await response.blob(), files === 1 ? 'audit-trail.csv' : `audit-trail-${files}.csv`)
      this._saved = { files, next: response.headers.get('x-next-cursor') }
    } catch (error) {
      this._fault = faultOf(error)
    }
  }

  #copy(head: string): void {
    const told = (done: boolean) => (): void => {
      this._copied = { head, done }
    }
    // A page on plain HTTP off loopback has no clipboard; elsewhere a browser may deny it.
    if (!('clipboard' in navigator)) return told(false)()
    void navigator.clipboard.writeText(head).then(told(true), told(false))
  }

  override render(): TemplateResult {
    const { data, fault } = this.#chain.answer
    return html`<section class="card chain" aria-labelledby="chain">
      <h2 class="sr" id="chain">Chain and exports</h2>
      ${data ? this.#standing(data) : html`<p class="muted">${fault ? `The chain could not be read: ${fault.message}` : 'Reading the chain…'}</p>`}
      <div class="row wrap exports">
        ${
          this._saved?.next === null
            ? nothing
            : html`<button class="small" @click=${() => void this.#save()}>
                ${icon('download', 14)}${this._saved ? 'CSV: the next 200' : 'CSV'}
              </button>`
        }
        <a class="button small" href=${this.app.api.prefix + chainFilePath} download="audit-chain.jsonl"
          >${icon('shield-check', 14)}Verifiable chain</a
        >
        <span class="muted" role="status">${this.#savedWords()}</span>
        ${this._fault ? html`<span class="fault" role="alert">${icon('triangle-alert', 14)}${this._fault.message}</span>` : nothing}
      </div>
      <details>
        <summary>What the chain proves, and what it does not</summary>
        <ul class="proves muted">
          <li>
            It proves that since its rows were linked none was changed, removed, moved or put in between. Take the
            verifiable file and run <code class="mono">signalbox audit verify audit-chain.jsonl</code>, anywhere,
            offline.
          </li>
          <li>
            It does not prove that what a row says was true, nor anything about the second between a row’s commit and
            its link.
          </li>
          <li>
            Whoever owns the database could compute a whole new chain. Note the head from time to time where they cannot
            write: only against a noted head would that show.
          </li>
        </ul>
      </details>
    </section>`
  }

  #savedWords(): string {
    const saved = this._saved
    if (!saved) return 'CSV: the newest 200 of what is shown below.'
    const files = plural(saved.files, 'file')
    return saved.next === null ? `${files} saved: that is all of it.` : `${files} saved; there are older records.`
  }

  #standing(chain: ChainAnswer): TemplateResult {
    const { number, hash, unlinked, checkedAt, fault } = chain
    const head = `${number}:${hash}`
    const copied = this._copied?.head === head ? this._copied : undefined
    const waiting = unlinked > unlinkedCounted ? `more than ${unlinkedCounted}` : String(unlinked)
    return html`<p class="row top">
        <span class=${fault ? 'tone-bad' : 'tone-ok'}>${icon(fault ? 'circle-x' : 'shield-check', 18)}</span>
        <strong
          >${
            fault
              ? `The chain is broken. ${fault.message}`
              : number === 0
                ? 'No row is linked yet.'
                : `Linked up to row ${this.app.format.count(number)}: whoever noted its hash can tell whether a row up to it was changed.`
          }</strong
        >
      </p>
      <dl class="facts">
        <div>
          <dt>Head</dt>
          <dd class="row">
            <code class="mono ell grow" title=${hash}>${head}</code>
            <button class="ghost small" @click=${() => this.#copy(head)}>
              ${icon(copied?.done ? 'check' : 'copy', 13)}${copied ? (copied.done ? 'Copied' : 'Could not copy') : 'Copy'}
            </button>
          </dd>
        </div>
        <div>
          <dt>Not linked yet</dt>
          <dd>${unlinked === 0 ? 'None' : `${waiting}: rows are linked about a second after they are written`}</dd>
        </div>
        <div>
          <dt>Followed whole</dt>
          <dd>
            ${
              checkedAt === null
                ? 'Not yet since it began; once an hour'
                : html`At ${this.app.format.atMinute(checkedAt)}, ${fault ? 'and found broken' : 'and found whole'}`
            }
          </dd>
        </div>
      </dl>`
  }
}

/** Saves bytes as a file, as a link would that somebody clicked. */
function offer(bytes: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(bytes)
  link.download = name
  link.click()
  // The browser has taken the bytes over once the click was handled.
  setTimeout(() => URL.revokeObjectURL(link.href))
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-audit-chain': SignalboxAuditChain
  }
}
