/**
 * One explanation on a page: its title and sentences, what is on record, and the ways to go on. Draws; the sentences are
 * domain/actor-explanation.ts.
 */
import { css, html, nothing, type TemplateResult } from 'lit'
import type { Explanation, Known, Remedy } from '../../domain/explanation.ts'
import type { App } from '../app.ts'
import { icon, type IconName } from '../elements/icon.ts'

/** What an explanation is about: where its ways lead. Null where there is no such place. */
export interface Subject {
  readonly app: App
  readonly commandId: string | null
  readonly agentId: string | null
  /** The local task. */
  readonly localId: string | null
  /** The command that was sent in its place. */
  readonly successorId: string | null
  /** Its words, where several stand in one list: each way's name says which it is for. */
  readonly about?: string | undefined
}

/** The name of a link or a button with these words, for whoever hears it without its row and has to tell it from the others. */
export const nameOf = (words: string, about: string | undefined): string | typeof nothing =>
  about === undefined ? nothing : `${words} ${about}`

interface Way {
  readonly path: string
  readonly words: string
  readonly icon: IconName
}

export const systemPath = '/actors?show=system'

/** Sending again is a new command under a new key, written by a person: so it leads to a composer and not to a request. */
export const sendAgainPath = (commandId: string, agentId: string, localId: string | null): string =>
  localId === null
    ? `/tasks/new?agent=${encodeURIComponent(agentId)}&again=${encodeURIComponent(commandId)}`
    : `/tasks/${encodeURIComponent(localId)}?again=${encodeURIComponent(commandId)}`

function wayOf(remedy: Remedy, { commandId, agentId, localId, successorId }: Subject): Way | undefined {
  switch (remedy) {
    case 'send-again':
      if (commandId === null || agentId === null) return undefined
      return { path: sendAgainPath(commandId, agentId, localId), words: 'Send again…', icon: 'reply' }
    case 'open-successor':
      if (successorId === null) return undefined
      return { path: `/actors/command/${successorId}`, words: 'See the one sent again', icon: 'arrow-right' }
    case 'open-task':
      if (localId === null) return undefined
      return { path: `/tasks/${encodeURIComponent(localId)}`, words: 'Open the task', icon: 'list-checks' }
    case 'open-agent':
      if (agentId === null) return undefined
      return { path: `/agents/${encodeURIComponent(agentId)}`, words: 'Open the agent', icon: 'bot' }
    case 'see-queues':
      return { path: systemPath, words: 'See the queues', icon: 'activity' }
  }
}

/** `more`: what is not a place to go to, in the same row. */
export function remedyLinks(
  { remedies }: Explanation,
  subject: Subject,
  more: TemplateResult | typeof nothing = nothing,
): TemplateResult | typeof nothing {
  const ways = remedies.flatMap((remedy) => wayOf(remedy, subject) ?? [])
  if (ways.length === 0 && more === nothing) return nothing
  return html`<p class="ways">
    ${ways.map(
      ({ path, words, icon: name }) =>
        html`<a
          class="button small"
          href=${subject.app.router.href(path)}
          data-route=${path}
          aria-label=${nameOf(words, subject.about)}
          >${icon(name, 13)}${words}</a
        >`,
    )}${more}
  </p>`
}

export const knownList = (known: readonly Known[], { format }: App): TemplateResult | typeof nothing =>
  known.length === 0
    ? nothing
    : html`<ul class="known" aria-label="What is on record">
        ${known.map(
          ({ words, at }) =>
            html`<li>
              <bdi>${words}</bdi>${at === null ? nothing : html` <span class="num">${format.at(at)}</span>`}
            </li>`,
        )}
      </ul>`

/** Sign of a tone. */
export const toneIcon = (tone: Explanation['tone']): IconName =>
  tone === 'bad' ? 'circle-x' : tone === 'warn' ? 'triangle-alert' : 'circle-check'

/** As a notice, for what needs a person or was settled by one. `more`: beside the ways to go on. */
export const explanationNotice = (
  explanation: Explanation,
  subject: Subject,
  more: TemplateResult | typeof nothing = nothing,
): TemplateResult =>
  html`<div class="notice ${explanation.tone} why" role="note">
    ${icon(toneIcon(explanation.tone), 15)}
    <div class="grow">
      <p>
        <b>${explanation.title}.</b>
        ${explanation.sentences.map((sentence) => html`<bdi>${sentence}</bdi> `)}
      </p>
      ${knownList(explanation.known, subject.app)} ${remedyLinks(explanation, subject, more)}
    </div>
  </div>`

export const explanationSheet = css`
  .known {
    display: grid;
    gap: 2px;
    margin-top: 6px;
    font-size: var(--sb-text-s);
    color: var(--sb-text-2);
  }
  .known li {
    overflow-wrap: anywhere;
  }
  .known .num {
    white-space: nowrap;
    color: var(--sb-text);
  }
  .ways {
    display: flex;
    flex-wrap: wrap;
    gap: 6px;
    margin-top: 8px;
  }
`
