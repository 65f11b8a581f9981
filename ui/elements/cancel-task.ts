/**
 * `<signalbox-cancel-task>`: asks an agent to cancel, after a person has said so twice. Owns the question, the key of the attempt
 * (kept for a retry after nobody answered) and telling how it ended. Whether the task is canceled is the agent's to say.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import * as z from 'zod/mini'
import type { TaskView } from '../../domain/task.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { explainCommand, meansUncertain } from '../../domain/command-explanation.ts'
import { taskQuestion } from '../questions.ts'
import { icon } from './icon.ts'
import { keepKeys } from './modal.ts'
import { sheet } from './sheet.ts'

const Canceled = z.object({ commandId: z.string() })
/** 504: accepted, and not answered within the 50 s a browser is kept waiting. */
const stillWaiting = 504

export class SignalboxCancelTask extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    task: { attribute: false },
    _step: { state: true },
    _fault: { state: true },
  }
  static override styles = [
    sheet,
    css`
      :host {
        display: contents;
      }
      button {
        height: 28px;
      }
      dialog {
        width: min(440px, calc(100vw - 32px));
        padding: 20px 24px;
      }
      dialog p {
        margin-top: 10px;
      }
      .notice {
        margin-top: 14px;
      }
      .notice p {
        margin-top: 4px;
      }
      footer {
        display: flex;
        justify-content: flex-end;
        gap: 8px;
        margin-top: 20px;
      }
      footer button {
        height: var(--sb-control);
      }
    `,
  ]
  declare app: App
  declare task: TaskView
  declare _step: 'idle' | 'running'
  declare _fault: ApiFault | undefined
  #key: string | undefined

  constructor() {
    super()
    this._step = 'idle'
    this._fault = undefined
  }

  get #dialog(): HTMLDialogElement | null {
    return this.renderRoot.querySelector('dialog')
  }

  ask(): void {
    // Disabled it would lose the focus that it was given back.
    if (this._step === 'running') return
    this._fault = undefined
    this.#key = undefined
    this.#dialog?.showModal()
  }

  async #cancel(): Promise<void> {
    const { agentId, taskId, tenant, localId } = this.task
    if (taskId === null || this._step === 'running') return
    this.#key ??= crypto.randomUUID()
    this._step = 'running'
    this._fault = undefined
    this.#dialog?.close()
    const path = `/api/agents/${agentId}/tasks/${encodeURIComponent(taskId)}/cancel?tenant=${encodeURIComponent(tenant)}`
    try {
      await this.app.api.change(path, { method: 'POST', idempotencyKey: this.#key }, Canceled)
    } catch (error) {
      this._fault = faultOf(error)
      if (this.isConnected) this.#dialog?.showModal()
    }
    this._step = 'idle'
    this.app.queries.refresh(taskQuestion(localId).path)
  }

  override render(): TemplateResult {
    const running = this._step === 'running'
    return html`<button class="ghost danger" aria-disabled=${running ? 'true' : nothing} @click=${() => this.ask()}>
        ${running ? 'Canceling…' : 'Cancel task'}
      </button>
      <dialog aria-labelledby="ask" @keydown=${keepKeys}>
        <h2 id="ask" class="h-xl">Cancel this task?</h2>
        ${
          this._fault
            ? this.#failed(this._fault)
            : html`<p>
                <bdi>${this.task.agentName}</bdi> is asked to stop. It may already have done part of the work, and it
                may refuse.
              </p>`
        }
        <footer>
          <button autofocus @click=${() => this.#dialog?.close()}>${this._fault ? 'Close' : 'Keep it running'}</button>
          ${this.#mayTry ? this.#tryButton() : nothing}
        </footer>
      </dialog>`
  }

  /** Again under the same key where nobody answered; not at all where a second cancel is the person's to judge. */
  get #mayTry(): boolean {
    return this._fault === undefined || this._fault.kind === 'unreachable'
  }

  #tryButton(): TemplateResult {
    return html`<button class="destructive" @click=${() => void this.#cancel()}>
      ${this._fault ? 'Retry' : 'Yes, cancel it'}
    </button>`
  }

  #failed(fault: ApiFault): TemplateResult {
    if (fault.status === stillWaiting) {
      return html`<p class="notice">
        ${icon('clock', 15)}<span
          >The cancel is accepted and goes on; the agent has not answered yet. This page shows it when it does.</span
        >
      </p>`
    }
    if (meansUncertain(fault.message)) {
      const told = explainCommand({ status: 'uncertain', error: fault.message, action: 'cancelTask' }, Date.now())
      return html`<div class="notice warn" role="alert">
        ${icon('triangle-alert', 15)}
        <div>
          <b>${told?.title}</b>
          ${told?.sentences.map((sentence) => html`<p>${sentence}</p>`)}
        </div>
      </div>`
    }
    return html`<div class="notice bad" role="alert">
      ${icon('circle-x', 15)}
      <div>
        <b>Not canceled</b>
        <p>${fault.message}</p>
      </div>
    </div>`
  }
}
