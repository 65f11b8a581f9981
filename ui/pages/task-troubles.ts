/**
 * What stands in a task's way, in sight above the composer however long the conversation is: following that does not work, and
 * what was said and did not arrive, or may not have, for whoever opens the task after the sender's own page is gone. Draws; the
 * words are domain/actor-explanation.ts.
 */
import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { Command } from '../../domain/command.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import { explainActor } from '../../domain/actor-explanation.ts'
import type { TaskActorsAnswer } from '../../domain/task-actors.ts'
import { needsPerson } from '../../domain/settlement.ts'
import { unsettledDays } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { SignalboxSettle } from '../elements/settle-send.ts'
import { define } from '../elements/view.ts'
import { knownList, remedyLinks, toneIcon } from './explanation-view.ts'

define('signalbox-settle', SignalboxSettle)

/** The newest are enough: the others are on the Actors page. */
const shownLimit = 3
const dayMs = 86_400_000

export interface Troubles {
  readonly app: App
  readonly localId: string
  readonly commands: readonly Command[]
  /** Undefined until they are known. */
  readonly followers: TaskActorsAnswer | undefined
  /** Whoever looks may act on it, and so settle what was said. */
  readonly operable: boolean
  /** And may send to its agent. */
  readonly sendable: boolean
  /** Its end is told by the composer that sent it. */
  readonly toldElsewhere: string | undefined
}

export function taskTroubles({
  app,
  localId,
  commands,
  followers,
  operable,
  sendable,
  toldElsewhere,
}: Troubles): TemplateResult | typeof nothing {
  const since = Date.now() - unsettledDays * dayMs
  const shown = commands
    .filter(({ status }) => needsPerson(status))
    .filter(({ id, updatedAt }) => id !== toldElsewhere && Date.parse(updatedAt) > since)
    .slice(0, shownLimit)
  const unread = followers ? unfollowed(app, followers) : []
  const count = shown.length + unread.length
  if (count === 0) return nothing
  // The first alone fills the room that they have: that there are more is said above it.
  const more = count > 1 ? html`<p class="label">${count} things stand in its way</p>` : nothing
  // By their ids: what somebody is settling must not become another's when one above it goes.
  const notices = repeat(
    shown,
    ({ id }) => id,
    (command) => trouble({ app, localId, command, operable, sendable }),
  )
  return html`${more}
    <div class="troubles scroll" tabindex="0" role="region" aria-label="What stands in its way">
      ${notices}${unread}
    </div>`
}

/** Why nothing new may be on this page, and when that is tried again. What only helps (push, looks) has its line beside. */
function unfollowed(app: App, { at, actors }: TaskActorsAnswer): readonly TemplateResult[] {
  const answer = actors.find(({ actor }) => actor.kind === 'subscription')
  if (!answer) return []
  const { kind, id, agentId } = answer.actor
  const path = `/actors/${kind}/${id}`
  const loud = explainActor(answer, Date.parse(at)).filter(({ tone }) => tone !== 'quiet')
  return loud.map(
    (explanation) =>
      html`<div class="notice warn" role="status">
        ${icon('triangle-alert', 15)}
        <div class="grow">
          <b>${explanation.title}</b>
          ${explanation.sentences.map((sentence) => html`<p><bdi>${sentence}</bdi></p>`)}
          ${knownList(explanation.known, app)}
          ${remedyLinks(
            { ...explanation, remedies: explanation.remedies.filter((remedy) => remedy !== 'open-task') },
            { app, commandId: null, agentId, localId: null, successorId: null },
          )}
          <a class="link" href=${app.router.href(path)} data-route=${path}>How it is followed</a>
        </div>
      </div>`,
  )
}

interface Trouble extends Pick<Troubles, 'app' | 'localId' | 'operable' | 'sendable'> {
  readonly command: Command
}

function trouble({ app, localId, command, operable, sendable }: Trouble): TemplateResult | typeof nothing {
  const { id, agentId, action, createdAt, evidence } = command
  const explanation = explainCommand(command, Date.now(), null, evidence)
  if (!explanation) return nothing
  const actor = `/actors/command/${id}`
  // The task is this page, and its agent is linked above it. What stands in the conversation is not offered to be said twice.
  const isThere = evidence?.outcome === 'found'
  const remedies = explanation.remedies.filter((remedy) => remedy === 'send-again' && sendable && !isThere)
  const here = { ...explanation, remedies }
  const settle = operable ? html`<signalbox-settle .app=${app} .commandId=${id}></signalbox-settle>` : nothing
  return html`<div class="notice ${explanation.tone}" role="note">
    ${icon(toneIcon(explanation.tone), 15)}
    <div class="grow">
      <b>${explanation.title}</b>
      <p class="muted">${action === 'cancelTask' ? 'A cancel' : 'A message'} of ${app.format.at(createdAt)}</p>
      ${explanation.sentences.map((sentence) => html`<p><bdi>${sentence}</bdi></p>`)}
      ${knownList(explanation.known, app)}
      ${remedyLinks(here, { app, commandId: id, agentId, localId, successorId: null }, settle)}
      <a class="link" href=${app.router.href(actor)} data-route=${actor}>What the command did</a>
    </div>
  </div>`
}
