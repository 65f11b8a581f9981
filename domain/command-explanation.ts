/**
 * What became of a command, in words for whoever sent it or looks after it: what is known, what it means, what to do. Owns
 * the table from the server's sentences to plain ones; a sentence it does not know is shown as it is. Does not decide
 * anything: what follows a failed or uncertain command is a person's decision, and is told as theirs.
 */
import type { DeliveryRecord } from './actor.ts'
import { type Command, commandErrors, discoveryInterrupted } from './command.ts'
import { plainState, type CommandEvidence } from './evidence.ts'
import { withStop, type Explanation, type Known } from './explanation.ts'
import { isolated } from './isolation.ts'
import { isUnstored } from './lost-answer.ts'
import { decisionWords, needsPerson, type Settlement } from './settlement.ts'
import { isOverdue } from './unread-agent.ts'

interface Finished extends Pick<Command, 'status' | 'error' | 'action'> {
  /** The task here that it was about; null where there is none, absent where that is not known. */
  readonly localId?: string | null
  /** What came instead of an answer, as its record says it; absent where that was not read. */
  readonly cause?: string | null
  /** How its delivery ended, in the same way. */
  readonly ended?: DeliveryRecord['ended']
}

const failures: Readonly<Record<string, { readonly meaning: string; readonly advice: string }>> = {
  [commandErrors.discovery]: {
    meaning: 'The agent did not show its card in three tries, so nothing was sent to it.',
    advice: 'Check on the Agents page that it answers, then send again.',
  },
  [discoveryInterrupted]: {
    meaning: 'Whoever looked for the agent ended meanwhile, ten times. Nothing was sent.',
    advice: 'The console’s log says why. Then send again.',
  },
  [commandErrors.unavailable]: {
    meaning: 'The agent is no longer registered, or the saved message is gone. Nothing was sent.',
    advice: 'Add the agent again, then send again.',
  },
  'Agent credentials are required.': {
    meaning: 'The agent wants to know who is asking, and this console has no credentials for it.',
    advice: 'An administrator can store them; then send again.',
  },
  'Protected agent operation failed.': {
    meaning: 'The agent refused the credentials that this console has for it, and did nothing.',
    advice: 'An administrator can store new ones; then send again.',
  },
  'Agent credential destination is not permitted.': {
    meaning: 'The agent is at an address that its credentials may not go to, so nothing was sent.',
    advice: 'An administrator can store them again with that address; then send again.',
  },
  'Agent credentials are disabled.': {
    meaning: 'The credentials for this agent were revoked, so nothing was sent.',
    advice: 'An administrator can store new ones; then send again.',
  },
  'Credential vault unavailable.': {
    meaning: 'The credentials for this agent cannot be opened: their key is missing here. Nothing was sent.',
    advice: 'Whoever runs this console can add the key; then send again.',
  },
  'Agent OAuth credentials unavailable.': {
    meaning: 'The server that hands out access to this agent gave none, so nothing was sent.',
    advice: 'Try again in a minute; if it stays so, an administrator has to look at the credentials.',
  },
  'The selected interface is no longer advertised by the Agent Card.': {
    meaning: 'The agent’s card changed meanwhile and no longer names the interface that was chosen. Nothing was sent.',
    advice: 'Send again: that goes by the card as it is now.',
  },
  'Agent network request failed.': {
    meaning: 'No connection to the agent could be opened, so nothing was sent.',
    advice: 'Check that the agent is running, then send again.',
  },
}

/** Sentences of the console's own about a card or a rule of its own, after which nothing is sent. */
const ruledOut: ReadonlySet<string> = new Set([
  'gRPC transport is unavailable under the hardened network policy; advertise an HTTP binding.',
  'The Agent Card advertises no interface that can be used.',
  'Agent Card trust policy rejected this connection.',
  'Agent target is not in the configured origin allowlist.',
  'Production agent targets require HTTPS.',
  'Agent network address is blocked.',
])
/** With a word of each address that was tried. */
const notFound = /^Agent Card discovery failed\./
/** By its status, or in the agent's own words, which stand for it. */
const tooMuch = /^HTTP 429\b|\btoo many requests\b|\brate.?limit(?:ed| (?:was )?(?:exceeded|reached|hit)\b)/i

/** By its record, or else by what was said. */
const isUnsent = (error: string, ended: DeliveryRecord['ended']): boolean =>
  ended === null ? ruledOut.has(error) || notFound.test(error) : ended === 'unsent' || ended === 'undelivered'

/** What to do about a failure that has no row of its own above, by what is known of it. */
function adviceOn(action: Command['action'], error: string, ended: DeliveryRecord['ended']): string {
  if (isUnsent(error, ended)) return 'Nothing was sent. Try again once that has changed.'
  if (tooMuch.test(error)) return 'It was too much at once for the agent, which did nothing. Try again later.'
  return action === 'send'
    ? 'The agent did not take the message. Change it, or send it again.'
    : 'The agent did not take the cancel. Look at the task, or cancel it again.'
}

const wasWhat = (action: Command['action']): string => (action === 'cancelTask' ? 'the cancel' : 'the message')

/** Undefined while it is under way, and when it went well. `nowMs`: by the clock of what is on record. */
export function explainCommand(
  command: Finished,
  nowMs: number,
  record: DeliveryRecord | null = null,
  evidence: CommandEvidence | null = null,
  settlement: Settlement | null = null,
): Explanation | undefined {
  const localId = record === null ? command.localId : record.localId
  const known = [...(record ? recorded(record) : []), ...(evidence ? lookedFor(evidence, nowMs) : [])]
  if (settlement && needsPerson(command.status)) return settled(command, settlement, { known, evidence })
  if (command.status === 'uncertain') {
    const cause = record?.cause ?? command.cause ?? null
    return {
      ...(evidence?.outcome === 'found'
        ? found(command, cause, evidence.localId !== null)
        : uncertain(command, cause, localId === null && !evidence?.localId)),
      known,
    }
  }
  if (command.status !== 'failed') return undefined
  if (command.error === crossedError) return crossed(command, known)
  const error = command.error ?? 'The command failed.'
  const told = failures[error]
  return {
    tone: 'bad',
    title: 'Not delivered',
    sentences: [
      told?.meaning ?? withStop(error),
      told?.advice ?? adviceOn(command.action, error, record?.ended ?? command.ended ?? null),
    ],
    known,
    remedies: command.action === 'send' ? ['send-again', 'open-agent'] : ['open-task', 'open-agent'],
  }
}

const crossedError = 'Agent response crossed a task skill boundary.'
/** Failed, and done all the same: the one end of which sending again is no remedy. */
const crossed = ({ action }: Finished, known: readonly Known[]): Explanation => ({
  tone: 'bad',
  title: 'Answered for another skill',
  sentences: [
    `The agent took ${wasWhat(action)}, and its answer is of another skill than the one that was asked. Nothing of it is kept.`,
    'It has probably done the work. Ask whoever runs the agent before you send it again.',
  ],
  known,
  remedies: action === 'send' ? ['open-agent'] : ['open-task', 'open-agent'],
})

/** The agent has answered, so that what is in doubt is only what it said. */
const answerLost = 'The agent’s answer is lost'
const lostHere = (action: Command['action']): string =>
  `The agent answered ${wasWhat(action)}, and what it said is lost: the console could not store its files.`
const isLostHere = (cause: string | null): boolean => cause !== null && isUnstored(cause)

/**
 * Never "failed": whether it took place is not known, and a second try might make it happen twice. `isWithoutTask`: there is
 * none here to look at, as after the first send of a conversation.
 */
function uncertain({ action, error }: Finished, cause: string | null, isWithoutTask: boolean): Explanation {
  const why =
    error === commandErrors.leaseExpired
      ? 'the process that sent it ended, or stood still, before it could say how it went'
      : 'there is no answer here that says whether it was done'
  return {
    tone: 'warn',
    title: isLostHere(cause) ? answerLost : 'Outcome unknown',
    sentences: [
      isLostHere(cause)
        ? `${lostHere(action)} Nothing is sent again automatically.`
        : `The agent may or may not have received ${wasWhat(action)}: ${why}. Nothing is sent again automatically.`,
      isWithoutTask
        ? 'It made no task here to look at, so ask whoever runs the agent, by the message id, before you send it again.'
        : 'Look at the task, or ask whoever runs the agent, before you send it again.',
    ],
    known: [],
    remedies: action === 'send' ? ['open-task', 'send-again', 'open-agent'] : ['open-task', 'open-agent'],
  }
}

interface Recorded {
  readonly known: readonly Known[]
  readonly evidence: CommandEvidence | null
}

/**
 * A person has looked: what they decided is told instead of what it might mean. What was found at the agent is not silenced by it: who
 * decided may have been wrong, and who relies on it is to know.
 */
function settled({ status, action }: Finished, settlement: Settlement, { known, evidence }: Recorded): Explanation {
  const { decision, note, by, at, successorId } = settlement
  const who = isolated(by.name)
  /** A look at the agent may be still to come. */
  const isAfter = ({ at: when }: Known): boolean => when !== null && when > at
  const isContradicted = decision === 'not-arrived' && evidence?.outcome === 'found'
  const mayFollow = action === 'send' && decision === 'not-arrived' && !isContradicted
  return {
    tone: isContradicted ? 'warn' : 'quiet',
    title: isContradicted ? 'Settled as not arrived, but it reached the agent' : `Settled: ${decisionWords[decision]}`,
    sentences: [
      ...(isContradicted ? [contradiction(action)] : []),
      `${who} looked at it and decided so. The record of the send stays as it is: ${status}.`,
      ...(note === null ? [] : [`Note: “${isolated(note)}”`]),
    ],
    known: [...known.filter((each) => !isAfter(each)), { words: `${who} settled it`, at }, ...known.filter(isAfter)],
    remedies: [
      ...(successorId === null ? [] : (['open-successor'] as const)),
      ...(mayFollow ? (['send-again'] as const) : []),
      'open-task',
      'open-agent',
    ],
  }
}

const contradiction = (action: Command['action']): string =>
  action === 'send'
    ? 'The console found the message at the agent: sending it again would say it twice. Whoever may send to the agent can reopen it and settle it anew.'
    : 'The agent says that the task is canceled. Whoever may send to the agent can reopen it and settle it anew.'

/** It was looked for and is there. The command stays uncertain: what follows is a person's to say. */
function found({ action }: Finished, cause: string | null, isKnownHere: boolean): Explanation {
  const isLost = isLostHere(cause)
  const why = isLost ? lostHere(action) : 'There is no answer here that says how it ended.'
  return {
    tone: 'warn',
    title: isLost ? answerLost : 'It reached the agent',
    sentences:
      action === 'send'
        ? [
            `${why} The message was found at the agent afterwards. Nothing is sent again automatically.`,
            `${isKnownHere ? 'Look at the task' : 'Its task is not known here, so ask whoever runs the agent, by the message id,'} to see what became of it: sending it again would say it twice.`,
          ]
        : [`${why} The agent says since that the task is canceled.`],
    known: [],
    remedies: action === 'send' ? ['open-task', 'send-again', 'open-agent'] : ['open-task', 'open-agent'],
  }
}

/** What was looked for at the agent, and found or not; and of what was found, how it stands now, or that nobody looks. */
const lookedFor = (evidence: CommandEvidence, nowMs: number): Known[] => {
  const { outcome, sentence, lookedAt, nextLookAt, localState } = evidence
  const isOver = outcome !== 'pending' && nextLookAt === null
  return [
    { words: sentence.replace(/\.$/, ''), at: lookedAt },
    ...nextLookOf(evidence, nowMs),
    ...(isOver ? [{ words: since(outcome, localState), at: null }] : []),
  ]
}

/** A look that is due is made by whoever asks its agent, which nobody may do at the moment. */
function nextLookOf({ looks, nextLookAt }: CommandEvidence, nowMs: number): Known[] {
  if (nextLookAt === null) return []
  const words = isOverdue(nextLookAt, nowMs) ? 'It was to be looked for' : 'It is looked for'
  return [{ words: looks === 0 ? words : `${words} again`, at: nextLookAt }]
}

function since(outcome: CommandEvidence['outcome'], localState: string | null): string {
  if (localState !== null) return `The task is followed here: ${plainState(localState)} now`
  return outcome === 'found' ? 'What became of it since is not known: nobody looks again' : 'It is not looked for again'
}

const endings: Readonly<Record<NonNullable<DeliveryRecord['ended']>, string>> = {
  replied: 'The agent answered',
  refused: 'The agent answered that it did nothing',
  unsent: 'No connection could be opened, so no byte left',
  crossed: 'The agent answered for another skill',
  unknown: 'It ended without an answer that says whether it was done',
  interrupted: 'The process that sent it had stopped renewing its lease, and was found gone',
  undelivered: 'Given up before anything was sent',
}

function recorded({ acceptedAt, leftAt, endedAt, ended, cause }: DeliveryRecord): Known[] {
  return [
    { words: 'Accepted and saved', at: acceptedAt },
    ...(leftAt === null ? [] : [{ words: 'From here on the request may have left', at: leftAt }]),
    ...(ended === null || endedAt === null ? [] : endedAs(ended, cause).map((words) => ({ words, at: endedAt }))),
  ]
}

function endedAs(ended: keyof typeof endings, cause: string | null): readonly string[] {
  if (cause === null) return [endings[ended]]
  const words = cause.replace(/\.$/, '')
  if (ended === 'undelivered') return [endings[ended], `The last try: ${words}`]
  return isUnstored(cause) ? [words] : [endings[ended], `What came instead: ${words}`]
}

/** The blocking routes answer 409 with the command's sentence; these two mean that the outcome is open. */
export const meansUncertain = (message: string): boolean =>
  message.includes(commandErrors.uncertain) || message.includes(commandErrors.leaseExpired)
