/**
 * The approver agent: wants a person's approval before it acts, and checks that what comes back is what was approved.
 * Owns two requests, one of each kind of action, and the check of the digest: SHA-256 over the canonical JSON of the
 * action [spec, approval request].
 */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../../a2a/canonical-json.ts'
import type { Message } from '../../a2a/messages.ts'
import { dataOf, wordsOf } from './turn.ts'
import type { DemoAgent, Turn } from './turn.ts'

const mediaType = 'application/vnd.console.approval-request+json'

type Action =
  | { readonly kind: 'send_message'; readonly text: string; readonly data?: Readonly<Record<string, unknown>> }
  | { readonly kind: 'send_data'; readonly form: unknown; readonly values: Readonly<Record<string, unknown>> }

const dispatchTrain = {
  kind: 'send_message',
  text: 'Dispatch the 08:15 to Harbour from platform 2.',
  data: { train: '08:15', platform: 2, section: 'north junction' },
} as const satisfies Action

const speedOrder = {
  kind: 'send_data',
  form: {
    title: 'Temporary speed restriction',
    submitLabel: 'Issue',
    schema: {
      type: 'object',
      required: ['section', 'limit'],
      properties: {
        section: { type: 'string', title: 'Section', maxLength: 80 },
        limit: { type: 'integer', title: 'Limit in km/h', minimum: 10, maximum: 160 },
        reason: { enum: ['works', 'weather', 'inspection'], title: 'Reason' },
        announce: { type: 'boolean', title: 'Announce it' },
      },
    },
  },
  values: { section: 'north junction', limit: 40, reason: 'works', announce: true },
} as const satisfies Action

export function approverAgent(extensionHost: string): DemoAgent {
  const uri = `https://${extensionHost}/console/approval-request/v1`
  return {
    name: 'Dispatcher',
    description: 'Does nothing dangerous without a person: asks for approval of exactly one action, and verifies it.',
    outputModes: ['text/plain', 'application/json'],
    extensions: [{ uri, description: 'Asks for approval of an action.' }],
    skills: [
      {
        id: 'dispatch',
        name: 'Dispatch a train',
        description: 'Wants a message approved before the train leaves.',
        tags: ['approval'],
        examples: ['Dispatch the 08:15', 'Dispatch it, high risk'],
      },
      {
        id: 'restrict',
        name: 'Restrict the speed',
        description: 'Wants values approved; the approver may edit them.',
        tags: ['approval', 'data'],
        examples: ['Issue a speed restriction (data)'],
      },
    ],
    play: (turn) => (turn.answers ? act(turn) : request(turn, uri)),
  }
}

function request(turn: Turn, uri: string): void {
  const words = wordsOf(turn.message).toLowerCase()
  const action: Action = /\b(data|form|speed|restrict)/.test(words) ? speedOrder : dispatchTrain
  const risk = /\b(low|medium|high)\b/.exec(words)?.[1] ?? (action === dispatchTrain ? 'high' : 'medium')
  const title =
    action.kind === 'send_message' ? 'Dispatch the 08:15 to Harbour' : 'Restrict the north junction to 40 km/h'
  const summary = 'The section is reported clear. Once this is approved I act at once, and it cannot be taken back.'
  const text = `May I? ${title}.`
  const data = { title, summary, risk, expiresInSeconds: 3_600, action }
  turn.settle('INPUT_REQUIRED', [{ text }, { data, mediaType }], [uri])
}

function act(turn: Turn): void {
  turn.working('Checking the approval…')
  const approved = digestSaid(turn.message)
  if (approved === undefined) {
    const text = 'That is an answer, not an approval, so I did nothing.'
    return turn.settle('COMPLETED', [{ text }])
  }
  const received = actionIn(turn.message)
  if (digestOf(received) !== approved) {
    const text = 'What I received is not what was approved: the digests differ. I did nothing.'
    return turn.settle('FAILED', [{ text }])
  }
  const edited = ![dispatchTrain, speedOrder].some((asked) => digestOf(asked) === approved)
  turn.artifact({
    artifactId: 'log',
    name: 'Dispatch log',
    parts: [{ data: { done: received, digest: approved, edited }, mediaType: 'application/json' }],
  })
  turn.settle('COMPLETED', [{ text: edited ? 'Done, as you changed it.' : 'Done, exactly as approved.' }])
}

function digestSaid({ metadata }: Message): string | undefined {
  const approval = metadata?.['approval']
  if (typeof approval !== 'object' || approval === null || !('revisionDigest' in approval)) return undefined
  return typeof approval.revisionDigest === 'string' ? approval.revisionDigest : undefined
}

/** What the message tells this agent to do, in the shape that was digested. */
function actionIn(message: Message): Action {
  const values = dataOf(message)
  if (values) return { kind: 'send_data', form: speedOrder.form, values }
  const decision = message.metadata?.['decision']
  const text = message.parts.map((part) => part.text ?? '').join('')
  const hasData = typeof decision === 'object' && decision !== null && !Array.isArray(decision)
  return { kind: 'send_message', text, ...(hasData ? { data: { ...decision } } : {}) }
}

/** `data` is null when absent, so that leaving it out and saying null are one action. */
function digestOf(action: Action): string {
  const exact = action.kind === 'send_message' ? { ...action, data: action.data ?? null } : action
  return createHash('sha256').update(canonicalJson(exact)).digest('hex')
}
