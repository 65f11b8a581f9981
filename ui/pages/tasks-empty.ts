/**
 * `<signalbox-no-tasks>`: what a list without rows says, by its filter. A person's own messages that are accepted and not
 * delivered make no task yet: then it does not say that nothing was sent.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { TaskFilter } from '../../domain/task.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { icon, type IconName } from '../elements/icon.ts'
import { underWayQuestion } from '../elements/sends-under-way.ts'
// Stands at the other end of the list, and is fetched with this: one more file to await would cost the first load its name.
import '../elements/unfollowed-tasks.ts'
import { sheet } from '../elements/sheet.ts'
import { define } from '../elements/view.ts'

interface Nothing {
  readonly icon: IconName
  readonly fact: string
  readonly advice: string
}

const nothingHere: Partial<Record<TaskFilter, Nothing>> = {
  all: {
    icon: 'list-checks',
    fact: 'No tasks yet',
    advice: 'Send an agent a message, and what it makes of it shows here.',
  },
  active: {
    icon: 'circle-check',
    fact: 'Nothing is being worked on',
    advice: 'Tasks that are not finished show here.',
  },
  'needs-input': {
    icon: 'circle-check',
    fact: 'No agent waits for you',
    advice: 'Tasks with a question or a sign-in show here.',
  },
  done: {
    icon: 'circle-dashed',
    fact: 'Nothing is finished yet',
    advice: 'Completed, failed and canceled tasks show here.',
  },
}
const notDelivered: Nothing = {
  icon: 'clock',
  fact: 'No task yet, and what you sent is not delivered yet',
  advice: 'It is saved. Its task shows here as soon as the agent has answered.',
}

/** @element signalbox-no-tasks */
class SignalboxNoTasks extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false }, filter: { attribute: false } }
  static override styles = [
    sheet,
    css`
      :host {
        display: block;
        height: 100%;
      }
    `,
  ]
  declare app: App
  declare filter: TaskFilter
  readonly #sends = new Query(this, () => ({ queries: this.app.queries, question: underWayQuestion }))

  override render(): TemplateResult {
    const { data, fault } = this.#sends.answer
    // Until it is known whether something is on its way, nothing is said.
    if (!data && !fault) return html``
    const all = this.filter === 'all'
    const waits = all && (data?.count ?? 0) > 0
    const told = waits ? notDelivered : (nothingHere[this.filter] ?? nothingHere.all)
    if (!told) return html``
    return html`<div class="empty">
      ${icon(told.icon, 28)}<b>${told.fact}</b>
      <p>${told.advice}</p>
      ${
        all && !waits
          ? html`<div class="row">
              <a class="button" href=${this.app.router.href('/agents')} data-route="/agents"
                >${icon('bot', 14)}Find somebody to ask</a
              >
            </div>`
          : nothing
      }
    </div>`
  }
}

define('signalbox-no-tasks', SignalboxNoTasks)

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-no-tasks': SignalboxNoTasks
  }
}
