/** `<signalbox-artifact>`: one artifact whole, in a dialog. Shows parts as parts.ts allows; the text can be copied. */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { Part, TaskArtifact } from '../../domain/task.ts'
import type { App } from '../app.ts'
import { partsSheet } from '../pages/transcript-sheet.ts'
import { icon } from './icon.ts'
import { keepKeys, openModal } from './modal.ts'
import { faceOf, joinText, partView, textOf } from './parts.ts'
import { sheet } from './sheet.ts'

/** What a person may want to paste elsewhere: text and addresses as they are, data as JSON. */
const copyOf = (part: Part): string => (part.kind === 'data' ? JSON.stringify(part.value, null, 2) : textOf(part))

export class SignalboxArtifact extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    artifact: { attribute: false },
    _copied: { state: true },
  }
  static override styles = [
    sheet,
    partsSheet,
    css`
      dialog {
        width: min(860px, calc(100vw - 32px));
        overflow: hidden;
      }
      dialog[open] {
        display: flex;
        flex-direction: column;
      }
      header {
        display: flex;
        align-items: center;
        gap: 8px;
        padding: 14px 16px 14px 24px;
        border-bottom: 1px solid var(--sb-border);
      }
      .in {
        display: grid;
        gap: 14px;
        padding: 18px 24px 24px;
      }
      .in:focus-visible {
        outline-offset: -2px;
      }
    `,
  ]
  declare app: App
  declare artifact: TaskArtifact
  declare _copied: boolean

  constructor() {
    super()
    this._copied = false
  }

  override firstUpdated(): void {
    openModal(this)
  }

  async #copy(text: string): Promise<void> {
    await navigator.clipboard.writeText(text)
    this._copied = true
  }

  override render(): TemplateResult {
    const parts = joinText(this.artifact.parts)
    const text = parts.map(copyOf).filter(Boolean).join('\n')
    const { name, summary } = faceOf(this.app, this.artifact)
    return html`<dialog aria-labelledby="title" @keydown=${keepKeys}>
      <header>
        <div class="grow">
          <h2 id="title" class="h-xl ell"><bdi>${name}</bdi></h2>
          <p class="faint num">${summary}${this.artifact.complete ? '' : ', still arriving'}</p>
        </div>
        ${
          text === ''
            ? nothing
            : html`<button class="small" @click=${() => void this.#copy(text)}>
                ${icon(this._copied ? 'check' : 'copy', 13)}${this._copied ? 'Copied' : 'Copy'}
              </button>`
        }
        <button
          class="small ghost icon-only"
          aria-label="Close"
          autofocus
          @click=${() => this.renderRoot.querySelector('dialog')?.close()}
        >
          ${icon('x', 15)}
        </button>
      </header>
      <div class="in scroll" tabindex="0" role="region" aria-labelledby="title">
        ${this.artifact.description ? html`<p class="said muted">${this.artifact.description}</p>` : nothing}
        ${parts.map((part) => partView(this.app, part))}
        ${parts.length === 0 ? html`<p class="muted">This artifact has no parts yet.</p>` : nothing}
      </div>
    </dialog>`
  }
}
