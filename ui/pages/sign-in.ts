/**
 * `<signalbox-sign-in>`: what stands in place of everything while nobody is signed in. Owns saying why, and the one way on, a
 * top-level navigation that comes back to the same page. Signing in itself is the identity provider's.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'

export class SignalboxSignIn extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false } }
  static override styles = [
    sheet,
    css`
      :host {
        display: grid;
        place-items: center;
        height: 100%;
        padding: 16px;
        background: var(--sb-bg);
      }
      .card {
        display: grid;
        justify-items: start;
        gap: 8px;
        width: min(400px, 100%);
        padding: 28px;
      }
      .sign {
        display: grid;
        place-items: center;
        width: 32px;
        height: 32px;
        margin-bottom: 8px;
        border-radius: 8px;
        color: var(--sb-on-accent);
        background: var(--sb-accent-solid);
      }
      .button {
        height: 32px;
        margin-top: 12px;
        padding: 0 14px;
        color: var(--sb-on-accent);
        background: var(--sb-accent-solid);
        border-color: transparent;
      }
      .button:hover {
        background: var(--sb-accent-solid-hover);
      }
    `,
  ]
  declare app: App

  /** Somebody was here before, in this page's life. */
  get #ended(): boolean {
    return this.app.person.get() !== undefined
  }

  /** What had the focus is gone with the rest; a host page's own focus is left alone. */
  override firstUpdated(): void {
    if (this.#ended && document.activeElement === document.body) this.renderRoot.querySelector('a')?.focus()
  }

  override render(): TemplateResult {
    const { app } = this
    const ended = this.#ended
    return html`<section class="card" aria-labelledby="title">
      <span class="sign" aria-hidden="true">${icon('route', 20)}</span>
      <h1 class="h-xl" id="title">${ended ? 'You are signed out.' : 'Sign in to Signalbox'}</h1>
      <p class="muted" role="status">
        ${
          ended
            ? 'What the page showed is gone from it. Accepted work goes on without you.'
            : 'Agents, their tasks and what people decided about them. Your organization’s sign-in decides who you are.'
        }
      </p>
      ${
        app.drafts.any
          ? html`<p class="muted">
              What you typed is kept in this tab, for you only: it ends when somebody else signs in here.
            </p>`
          : nothing
      }
      <a class="button" href=${app.signInHref} target="_top"
        >${icon('log-in', 15)}${ended ? 'Sign in again' : 'Sign in'}</a
      >
    </section>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-sign-in': SignalboxSignIn
  }
}
