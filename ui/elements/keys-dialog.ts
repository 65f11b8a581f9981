/** `<signalbox-keys>`: every key that does something right now, and the switch that turns single keys off (WCAG 2.1.4). */
import { css, html, LitElement, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { App } from '../app.ts'
import type { Binding } from '../keys.ts'
import { keepKeys, openModal } from './modal.ts'
import { sheet } from './sheet.ts'

const groups: readonly Binding['group'][] = ['Move', 'This page', 'Go to', 'Console']
const names: Readonly<Record<string, string>> = { Escape: 'Esc' }

export class SignalboxKeys extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false } }
  static override styles = [
    sheet,
    css`
      dialog {
        width: min(680px, calc(100vw - 32px));
        padding: 22px 24px 16px;
      }
      .groups {
        columns: 2 240px;
        column-gap: 32px;
        margin: 16px 0 18px;
      }
      section {
        break-inside: avoid;
        margin-bottom: 18px;
      }
      dl {
        display: grid;
        gap: 6px;
        margin-top: 8px;
      }
      dl div {
        display: flex;
        gap: 10px;
        align-items: center;
      }
      dt {
        display: flex;
        gap: 3px;
        flex: none;
        width: 62px;
      }
      form {
        display: flex;
        align-items: center;
        gap: 12px;
        padding-top: 14px;
        border-top: 1px solid var(--sb-border);
      }
    `,
  ]
  declare app: App

  override firstUpdated(): void {
    openModal(this)
  }

  override render(): TemplateResult {
    const { keys } = this.app
    return html`<dialog aria-labelledby="title" @keydown=${keepKeys}>
      <h2 id="title" class="h-xl">Keyboard</h2>
      <div class="groups">${groups.map((group) => this.#group(group, keys.all))}</div>
      <form method="dialog">
        <label class="row"
          ><input
            type="checkbox"
            ?checked=${keys.singleKeys}
            @change=${(event: Event & { currentTarget: HTMLInputElement }) => keys.useSingleKeys(event.currentTarget.checked)}
          />Single-key shortcuts</label
        >
        <span class="grow"></span>
        <button autofocus>Close</button>
      </form>
    </dialog>`
  }

  #group(group: Binding['group'], all: readonly Binding[]): TemplateResult | string {
    const shown = all.filter((binding) => binding.group === group)
    // A page's binding hides the console's for the same key.
    const first = shown.filter((binding, at) => shown.findIndex(({ keys }) => keys === binding.keys) === at)
    if (first.length === 0) return ''
    return html`<section>
      <h3 class="label">${group}</h3>
      <dl>
        ${first.map(
          ({ keys, label, withControl }) =>
            html`<div>
              <dt>
                ${withControl ? html`<kbd>Ctrl</kbd>` : ''}${keys.split(' ').map((key) => html`<kbd>${names[key] ?? key}</kbd>`)}
              </dt>
              <dd>${label}</dd>
            </div>`,
        )}
      </dl>
    </section>`
  }
}
