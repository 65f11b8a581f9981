/** Whether an agent's card can be believed, in words: what it is, why, and what to do about it. Judging is the server's. */
import { html, nothing, type TemplateResult } from 'lit'
import type { CardSigning, Trust } from '../../domain/agent.ts'
import { icon } from '../elements/icon.ts'
import { trustMarks } from '../states.ts'

const meanings: Record<Trust, { readonly title: string; readonly means: string; readonly advice: string }> = {
  verified: {
    title: 'Verified: a key that this console trusts has signed the card',
    means: 'Only what the signature covers is read; whoever can change the card on its way cannot change that.',
    advice: '',
  },
  unsigned: {
    title: 'Unsigned: nobody vouches for this card',
    means: 'It is what the address answered. Whoever controls that server, or its name, decides what the card says.',
    advice:
      'Ask whoever runs the agent to sign the card, and pin their public key in A2A_TRUSTED_CARD_KEYS for this origin.',
  },
  untrusted: {
    title: 'Untrusted key: the card is signed, by a key that nobody here has pinned',
    means: 'A signature by an unknown key proves nothing about who made the card.',
    advice:
      'Get the public key from whoever runs the agent, not from the card, and pin it in A2A_TRUSTED_CARD_KEYS for this origin.',
  },
  invalid: {
    title: 'Invalid signature: the card is not what its signer signed',
    means: 'It names a pinned key, and the signature does not verify. Nothing is sent to this agent.',
    advice: 'Ask whoever runs the agent whether the card or its key was changed. Do not unpin the key to make it work.',
  },
}

export function agentTrust(trust: Trust, signing: CardSigning | undefined, cardUrl: string): TemplateResult {
  const { title, means, advice } = meanings[trust]
  const { icon: name, tone } = trustMarks[trust]
  const origin = URL.canParse(cardUrl) ? new URL(cardUrl).origin : cardUrl
  const others = (signing?.namedKeys ?? []).filter((key) => key !== signing?.keyId)
  const row = (term: string, value: unknown): TemplateResult =>
    html`<div>
      <dt>${term}</dt>
      <dd>${value}</dd>
    </div>`
  return html`<section aria-labelledby="trust">
    <h2 class="label" id="trust">Trust</h2>
    <div class="card pad trust">
      <p class="row"><span class=${tone ? `tone-${tone}` : 'muted'}>${icon(name, 18)}</span><b>${title}</b></p>
      <p class="muted">${means}</p>
      <dl class="facts">
        ${signing ? row('Why', signing.explanation) : nothing}
        ${signing?.keyId === undefined ? nothing : row('Key', html`<bdi class="mono">${signing.keyId}</bdi>`)}
        ${others.length === 0 ? nothing : row(signing?.keyId === undefined ? 'Keys it names' : 'Other keys it names', html`<bdi class="mono">${others.join(', ')}</bdi>`)}
        ${
          signing?.ignoredFields === undefined
            ? nothing
            : row('Not signed, so not read', html`<bdi class="mono">${signing.ignoredFields.join(', ')}</bdi>`)
        }
        ${row('Origin', html`<span class="mono">${origin}</span>`)}
        ${advice === '' ? nothing : row('What to do', advice)}
      </dl>
    </div>
  </section>`
}
