/**
 * `<signalbox-me>`: whose session this is, and its end. Owns the button at the foot of the navigation and its panel. What a role
 * may do is the server's to decide; here it is only said.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import * as z from 'zod/mini'
import type { Role, Session } from '../../domain/access.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { personMark, roleWords } from '../states.ts'
import { icon } from './icon.ts'
import { keepKeys } from './modal.ts'
import { sheet } from './sheet.ts'

const SignedOut = z.object({ signedOut: z.boolean() })

const mayWords: Record<Role, string> = {
  admin: 'Sees every agent and task, sends, decides, and manages agents and access.',
  operator: 'Sees the agents that were granted, and sends to those granted for sending.',
  viewer: 'Sees the agents that were granted. Sending needs the role operator.',
}

export class SignalboxSessionMenu extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    session: { attribute: false },
    _fault: { state: true },
    _ending: { state: true },
  }
  static override styles = [
    sheet,
    css`
      .who {
        width: 100%;
        height: 36px;
        padding: 0 4px;
        gap: 7px;
        text-align: start;
      }
      .avatar {
        width: 24px;
        height: 24px;
        font-size: 9.5px;
      }
      .names {
        display: grid;
        line-height: 16px;
        min-width: 0;
        color: var(--sb-text);
      }
      .names bdi {
        font-size: var(--sb-text-s);
      }
      .names .faint {
        font-size: var(--sb-text-xs);
        font-weight: 400;
      }
      [popover] {
        position: fixed;
        inset: auto;
        width: 264px;
        margin: 0;
        padding: 14px 16px;
        color: inherit;
        background: var(--sb-raised);
        border: 1px solid var(--sb-border);
        border-radius: var(--sb-radius-l);
        box-shadow: var(--sb-shadow-2);
      }
      [popover]:popover-open {
        display: grid;
        gap: 8px;
      }
      h2 {
        font-weight: 600;
      }
      [popover] button {
        margin-top: 4px;
        justify-self: start;
      }
      @container console (max-width: 1080px) {
        .names {
          position: absolute;
          width: 1px;
          height: 1px;
          overflow: hidden;
          clip-path: inset(50%);
        }
        .who {
          justify-content: center;
          padding: 0;
        }
      }
    `,
  ]
  declare app: App
  declare session: Session
  declare _fault: ApiFault | undefined
  declare _ending: boolean

  constructor() {
    super()
    this._fault = undefined
    this._ending = false
  }

  override connectedCallback(): void {
    super.connectedCallback()
    document.addEventListener('keydown', this.#takeEscape, { capture: true })
  }

  override disconnectedCallback(): void {
    document.removeEventListener('keydown', this.#takeEscape, { capture: true })
    super.disconnectedCallback()
  }

  /**
   * While it is open the key is the menu's, before any page hears it and wherever the focus is: on the button, or on nothing after a
   * click on the words of the panel.
   */
  readonly #takeEscape = (event: KeyboardEvent): void => {
    const menu = event.key === 'Escape' ? this.renderRoot.querySelector<HTMLElement>('[popover]:popover-open') : null
    if (!menu) return
    event.preventDefault()
    event.stopPropagation()
    menu.hidePopover()
    this.renderRoot.querySelector<HTMLElement>('.who')?.focus()
  }

  /** Above the button: popovers stand in the top layer, whose measure is the window. */
  #place(event: ToggleEvent & { currentTarget: HTMLElement }): void {
    if (event.newState !== 'open') return
    const button = this.renderRoot.querySelector('.who')?.getBoundingClientRect()
    if (!button) return
    event.currentTarget.style.setProperty('left', `${Math.max(8, button.left)}px`)
    event.currentTarget.style.setProperty('bottom', `${innerHeight - button.top + 6}px`)
  }

  async #signOut(): Promise<void> {
    this._fault = undefined
    this._ending = true
    try {
      await this.app.api.change('/api/auth/logout', { method: 'POST' }, SignedOut)
      this.app.signOut()
    } catch (error) {
      this._fault = faultOf(error)
    }
    this._ending = false
  }

  override render(): TemplateResult {
    const { user, mode } = this.session
    return html`<button class="who ghost" popovertarget="menu" title=${user.displayName}>
        ${personMark(user.displayName)}<span class="names"
          ><bdi class="ell">${user.displayName}</bdi><span class="sr">, </span
          ><span class="faint">${roleWords[user.role]}</span></span
        ><span class="sr">, your session</span>
      </button>
      <section
        id="menu"
        popover
        aria-label="Your session"
        @keydown=${keepKeys}
        @beforetoggle=${(event: ToggleEvent & { currentTarget: HTMLElement }) => this.#place(event)}
      >
        <h2><bdi>${user.displayName}</bdi></h2>
        <p><span class="chip">${roleWords[user.role]}</span></p>
        <p class="muted">${mayWords[user.role]}</p>
        ${
          mode === 'development'
            ? html`<p class="muted">
                Nobody signs in here: in development mode everybody who reaches this console is the local administrator.
              </p>`
            : html`<button ?disabled=${this._ending} @click=${() => void this.#signOut()}>
                ${icon('log-out', 14)}${this._ending ? 'Signing out…' : 'Sign out'}
              </button>`
        }
        ${this._fault ? html`<p class="fault" role="alert">${icon('triangle-alert', 14)}<span>Still signed in: ${this._fault.message}</span></p>` : nothing}
      </section>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-me': SignalboxSessionMenu
  }
}
