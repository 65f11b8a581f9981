/**
 * What a link of another page narrowed the list of actors to. There is no other way to ask for it, so it says how to be rid of it.
 * Draws; the filter is its caller's.
 */
import { html, nothing, type TemplateResult } from 'lit'
import { shortOwner } from '../../domain/system-words.ts'
import { icon } from '../elements/icon.ts'
import type { ActorFilter } from './actors-questions.ts'

const narrowed = (words: unknown, title: string, clear: () => void): TemplateResult =>
  html`<button class="small of-work" title=${title || nothing} @click=${clear}>
    <span class="ell">${words}</span>${icon('x', 13, 'Show all')}
  </button>`

/** `agentName`: undefined where it is not known here. */
export function narrowedTo(
  { work, owner, agentId }: ActorFilter,
  agentName: string | undefined,
  narrow: (change: Partial<ActorFilter>) => void,
): TemplateResult {
  const whose = owner === '' ? 'Under way' : `Held by ${shortOwner(owner)}`
  const ofWork = work === 'due' ? 'Due, held by nobody' : whose
  const ofAgent = agentName === undefined ? 'About one agent' : html`About <bdi>${agentName}</bdi>`
  return html`${work === '' && owner === '' ? nothing : narrowed(ofWork, owner, () => narrow({ work: '', owner: '' }))}
  ${agentId === '' ? nothing : narrowed(ofAgent, agentId, () => narrow({ agentId: '' }))}`
}
