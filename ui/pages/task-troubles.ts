/**
 * What was said about a task and did not arrive, or may not have: below the conversation, for whoever opens the task after the
 * sender's own page is gone. Draws; the words are domain/command-explanation.ts.
 */
import { html, nothing, type TemplateResult } from 'lit'
import type { Command } from '../../domain/command.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import { unsettledDays } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { remedyLinks } from './explanation-view.ts'

/** The newest are enough: the others are on the Actors page. */
const shownLimit = 3
const dayMs = 86_400_000

export interface Troubles {
  readonly app: App
  readonly localId: string
  readonly commands: readonly Command[]
  /** Its end is told by the composer that sent it. */
  readonly toldElsewhere: string | undefined
}

export function taskTroubles({ app, localId, commands, toldElsewhere }: Troubles): TemplateResult | typeof nothing {
  const since = Date.now() - unsettledDays * dayMs
  const shown = commands
    .filter(({ id, updatedAt }) => id !== toldElsewhere && Date.parse(updatedAt) > since)
    .slice(0, shownLimit)
  return html`${shown.map((command) => trouble(app, localId, command))}`
}

function trouble(app: App, localId: string, command: Command): TemplateResult | typeof nothing {
  const explanation = explainCommand(command)
  if (!explanation) return nothing
  const { id, agentId, action, createdAt } = command
  const actor = `/actors/command/${id}`
  // The task is this page, and its agent is linked above it.
  const here = { ...explanation, remedies: explanation.remedies.filter((remedy) => remedy === 'send-again') }
  return html`<div class="notice ${explanation.tone}" role="note">
    ${icon(explanation.tone === 'bad' ? 'circle-x' : 'triangle-alert', 15)}
    <div class="grow">
      <b>${explanation.title}</b>
      <p class="muted">${action === 'cancelTask' ? 'A cancel' : 'A message'} of ${app.format.at(createdAt)}</p>
      ${explanation.sentences.map((sentence) => html`<p><bdi>${sentence}</bdi></p>`)}
      ${remedyLinks(here, { app, commandId: id, agentId, localId })}
      <a class="link" href=${app.router.href(actor)} data-route=${actor}>What the command did</a>
    </div>
  </div>`
}
