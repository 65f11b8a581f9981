/**
 * What sending a message once more means, in words that say no more and no less than is on record: whether the agent has it
 * already, may have it, or surely has not. Does not decide: a person sends again, as a new command.
 */
import type { DeliveryRecord } from './actor.ts'
import type { CommandStatus } from './command.ts'
import type { CommandEvidence } from './evidence.ts'
import { settledBy, type Settlement } from './settlement.ts'

/** Asked once more before it is sent, where sending it surely says it twice. */
export interface Caution {
  readonly title: string
  readonly sentences: readonly string[]
  readonly word: string
}

export interface AgainWords {
  readonly tone: 'quiet' | 'warn'
  readonly title: string
  readonly sentences: readonly string[]
  readonly caution: Caution | null
}

/** To whom something is said. */
export interface Address {
  readonly agentId: string
  readonly tenant: string
  /** Of what continues a task it is that task's, which it does not name. */
  readonly skillId: string | null
}

/**
 * Whether words go where they went before: what is for another tenant or skill cannot take the place of an earlier send. In a task, too:
 * a message with a skill may have been found in a task that the agent's list told of, which has none.
 */
export const isSameAddress = (before: Address, { agentId, tenant, skillId }: Address): boolean =>
  agentId === before.agentId && tenant === before.tenant && skillId === before.skillId

/** An earlier send whose words a page has put into a field. */
export interface Offered extends Address {
  readonly text: string
  /** The words are in the field: not where a draft was kept instead. */
  readonly filled: boolean
  /** The person put away what was told of it. */
  readonly dismissed: boolean
}

/**
 * Whether what a person sends is that message said once more, and so takes its place for good. Words that only hold it, or go
 * elsewhere, are another message: "not now" is no second "no".
 */
export const isSaidAgain = ({ text, filled, dismissed, ...before }: Offered, said: string, to: Address): boolean =>
  filled && !dismissed && isSameAddress(before, to) && text.trim() !== '' && said.trim() === text.trim()

export interface SentBefore {
  readonly status: CommandStatus
  readonly delivery: Pick<DeliveryRecord, 'ended'> | null
  readonly evidence: CommandEvidence | null
  /** What a person decided about it; null while nobody has. */
  readonly settlement: Settlement | null
}

const fresh = 'Sending it is a new command with a new key.'

const twice = (title: string, ...sentences: readonly string[]): AgainWords => ({
  tone: 'warn',
  title,
  sentences: [...sentences, 'Sending it again says it twice.'],
  caution: {
    title: 'Say it twice?',
    sentences: [
      ...sentences,
      'It would get the same words a second time, as a new message, and may do the work again.',
    ],
    word: 'Send it a second time',
  },
})

export function againWords(sent: SentBefore): AgainWords {
  const { settlement } = sent
  const said = settlement && `${settledBy(settlement)}.`
  if (said !== null && settlement?.decision === 'arrived') return twice('The agent has this message', said)
  if (said !== null && settlement?.decision === 'sent-again') return twice('This message was sent again already', said)
  const words = unsettled(sent)
  return said === null ? words : { ...words, sentences: [said, ...words.sentences] }
}

function unsettled({ status, delivery, evidence }: SentBefore): AgainWords {
  if (status === 'succeeded') return twice('The agent has this message', 'It was delivered, and the agent answered.')
  if (status === 'failed') return failed(delivery?.ended ?? null)
  if (status !== 'uncertain') return twice('This message is on its way', 'It is accepted, and delivered once.')
  if (evidence?.outcome === 'found')
    return twice(`The agent has this message (task ${evidence.taskId ?? 'unknown'})`, evidence.sentence)
  return {
    tone: 'warn',
    title: 'The agent may have this message',
    sentences: [
      ...(evidence === null ? [] : [evidence.sentence]),
      `${fresh} If the agent has it already, it gets it twice.`,
    ],
    caution: null,
  }
}

/** Failed is surely not done, but for an answer that was another skill's. Whether anything reached the agent is another question. */
function failed(ended: DeliveryRecord['ended']): AgainWords {
  const said = (title: string, sentence: string): AgainWords => ({
    tone: 'quiet',
    title,
    sentences: [sentence, fresh],
    caution: null,
  })
  if (ended === 'undelivered' || ended === 'unsent')
    return said('Nothing of this reached the agent', 'The first try ended before anything was sent.')
  if (ended === 'refused')
    return said('The agent did not take this message', 'It answered the first try, and did nothing.')
  if (ended === 'crossed')
    return twice('The agent has this message', 'It answered for another skill than the one that was asked.')
  return said('This message was not delivered', 'The first try failed.')
}
