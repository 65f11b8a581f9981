/**
 * Who looks after a task, in the column beside it: one quiet line an actor, with the way to its own page, and by which ways
 * news last came. Draws; what is stuck among them is told below the conversation (task-troubles.ts).
 */
import { html, nothing, type TemplateResult } from 'lit'
import type { ActorAnswer } from '../../domain/actor.ts'
import { explainActor } from '../../domain/actor-explanation.ts'
import type { Heard, TaskActorsAnswer } from '../../domain/task-actors.ts'
import type { App } from '../app.ts'

const terms: Readonly<Record<string, string>> = {
  subscription: 'Stream',
  push: 'Push',
  reconciliation: 'Looks',
}
/** Who holds a task has a place of its own. */
const shownKinds: ReadonlySet<string> = new Set(Object.keys(terms))

const ways: Record<Heard['way'], string> = { stream: 'by the stream', push: 'by a push', poll: 'by a look' }

/** A pass is over in these states, so the actor's last step is when the task was looked at. */
const looked: ReadonlySet<string> = new Set(['pausing', 'listing'])

export function taskFollowers(
  app: App,
  { at, actors, heard }: TaskActorsAnswer,
  isOver: boolean,
): TemplateResult | typeof nothing {
  // Once a task is finished nobody asks for it, whatever the agent's other tasks need.
  const shown = actors.filter(({ actor: { kind } }) => shownKinds.has(kind) && !(isOver && kind === 'reconciliation'))
  if (shown.length === 0) return nothing
  return html`<section>
    <h2 class="label">How it is followed</h2>
    <dl>
      ${shown.map((answer) => line(app, answer, Date.parse(at)))}
      ${
        heard.length === 0
          ? nothing
          : html`<div>
              <dt>News</dt>
              <dd>${heard.map((each) => html`<p>${app.format.at(each.at)} ${ways[each.way]}</p>`)}</dd>
            </div>`
      }
    </dl>
  </section>`
}

function line(app: App, answer: ActorAnswer, nowMs: number): TemplateResult {
  const { kind, id, value, updatedAt } = answer.actor
  const [explanation] = explainActor(answer, nowMs)
  const path = `/actors/${kind}/${id}`
  const words =
    kind === 'reconciliation' && typeof value === 'string' && looked.has(value)
      ? html`Last looked at ${app.format.at(updatedAt)} by reconciliation`
      : explanation?.title
  return html`<div>
    <dt>${terms[kind]}</dt>
    <dd>
      <a
        class="link ${explanation?.tone === 'quiet' ? '' : 'tone-warn'}"
        href=${app.router.href(path)}
        data-route=${path}
        title=${explanation?.sentences.join(' ') ?? ''}
        >${words}</a
      >
    </dd>
  </div>`
}
