/**
 * Who looks after a task, in the column beside it: one quiet line an actor, with the way to its own page, and by which ways
 * news last came. Draws; what is stuck among them is told below the conversation (task-troubles.ts).
 */
import { html, nothing, type TemplateResult } from 'lit'
import type { ActorAnswer } from '../../domain/actor.ts'
import { explainActor } from '../../domain/actor-explanation.ts'
import { lookedAt, type Heard, type TaskActorsAnswer } from '../../domain/task-actors.ts'
import { isTerminal, type TaskView } from '../../domain/task.ts'
import type { App } from '../app.ts'
import type { Answer } from '../queries.ts'

const terms: Readonly<Record<string, string>> = {
  subscription: 'Stream',
  push: 'Push',
  reconciliation: 'Looks',
}
/** Who holds a task has a place of its own. */
const shownKinds: ReadonlySet<string> = new Set(Object.keys(terms))

const ways: Record<Heard['way'], string> = { stream: 'by the stream', push: 'by a push', poll: 'by a look' }

export function taskFollowers(
  app: App,
  { data, fault }: Answer<TaskActorsAnswer>,
  { state, createdAt }: Pick<TaskView, 'state' | 'createdAt'>,
): TemplateResult | typeof nothing {
  if (!data) return nothing
  const { at, actors, heard } = data
  // Once a task is finished nobody asks for it, whatever the agent's other tasks need.
  const isOver = isTerminal(state)
  const shown = actors.filter(({ actor: { kind } }) => shownKinds.has(kind) && !(isOver && kind === 'reconciliation'))
  if (shown.length === 0) return nothing
  return html`<section>
    <h2 class="label">How it is followed</h2>
    ${fault ? html`<p class="muted">Not up to date: as it was at ${app.format.at(at)}.</p>` : nothing}
    <dl>
      ${shown.map((answer) => line(app, answer, createdAt, Date.parse(at)))}
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

function line(app: App, answer: ActorAnswer, begunAt: string, nowMs: number): TemplateResult {
  const { kind, id } = answer.actor
  const [explanation] = explainActor(answer, nowMs)
  const path = `/actors/${kind}/${id}`
  const look = lookedAt(answer.actor, begunAt)
  const words =
    look === null ? explanation?.title : html`Its agent’s tasks were last looked through at ${app.format.at(look)}`
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
