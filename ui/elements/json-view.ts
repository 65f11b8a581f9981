/**
 * `<signalbox-json>`: a JSON value as a tree of native `<details>`. Shows what it is given and nothing else: text stays text,
 * a URL is not a link. Bounded in depth and in width, because the value is an agent's.
 */
import { css, html, LitElement, nothing, type TemplateResult } from 'lit'
import { plural } from '../format.ts'
import { sheet } from './sheet.ts'

const depthLimit = 40
const widthStep = 100
const openDepth = 2
const openWidth = 12

export class SignalboxJson extends LitElement {
  static override properties = { value: { attribute: false }, _shown: { state: true } }
  static override styles = [
    sheet,
    css`
      :host {
        font-family: var(--sb-mono);
        font-size: var(--sb-text-s);
        font-variant-ligatures: none;
        overflow-wrap: anywhere;
      }
      details > div,
      .leaf {
        padding-inline-start: 16px;
      }
      details > div {
        margin-inline-start: 5px;
        padding-inline-start: 11px;
        border-inline-start: 1px solid var(--sb-border);
      }
      summary {
        cursor: default;
        border-radius: 4px;
      }
      @container console (max-width: 720px) {
        summary {
          padding-block: 2px;
        }
      }
      summary:hover {
        background: var(--sb-hover);
      }
      .key {
        color: var(--sb-text-2);
      }
      .string {
        color: var(--sb-text);
        white-space: pre-wrap;
      }
      .other {
        color: var(--sb-accent);
      }
    `,
  ]
  declare value: unknown
  /** How many entries of a wide node are shown, by its path. */
  declare _shown: ReadonlyMap<string, number>

  constructor() {
    super()
    this.value = undefined
    this._shown = new Map()
  }

  override render(): TemplateResult {
    return this.#node(undefined, this.value, 0, '$')
  }

  #node(key: string | undefined, value: unknown, depth: number, path: string): TemplateResult {
    const label = key === undefined ? nothing : html`<span class="key"><bdi>${key}</bdi>: </span>`
    if (typeof value !== 'object' || value === null) return html`<div class="leaf">${label}${this.#leaf(value)}</div>`
    const entries = Object.entries(value)
    const [left, right] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
    if (entries.length === 0) return html`<div class="leaf">${label}<span class="faint">${left}${right}</span></div>`
    if (depth >= depthLimit)
      return html`<div class="leaf">${label}<span class="faint">nested too deep to show</span></div>`
    const shown = entries.slice(0, this._shown.get(path) ?? widthStep)
    const size = plural(entries.length, Array.isArray(value) ? 'item' : 'key')
    return html`<details ?open=${depth < openDepth && entries.length <= openWidth}>
      <summary>${label}<span class="faint">${left} ${size} ${right}</span></summary>
      <div>
        ${shown.map(([name, child]) => this.#node(name, child, depth + 1, `${path}/${name}`))}
        ${
          shown.length < entries.length
            ? html`<button class="small" @click=${() => this.#more(path, shown.length)}>
                Show more of ${plural(entries.length - shown.length, 'entry', 'entries')}
              </button>`
            : nothing
        }
      </div>
    </details>`
  }

  #leaf(value: unknown): TemplateResult {
    if (typeof value === 'string') return html`<bdi class="string">${JSON.stringify(value)}</bdi>`
    return html`<span class="other">${value === undefined ? 'nothing' : JSON.stringify(value)}</span>`
  }

  #more(path: string, shown: number): void {
    this._shown = new Map([...this._shown, [path, shown + widthStep]])
  }
}
