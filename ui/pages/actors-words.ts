/**
 * Why an actor needs a person's eye, in words: what happened, what the console will not do by itself, what a person can do.
 * Owns the sentences; which states need an eye is the machines' own tag and the lease.
 */
import { activeNodes, liveLeaves, type ActorDetail, type ChartDefinition } from '../../domain/chart.ts'

export interface Explanation {
  readonly title: string
  readonly sentence: string
}

const text = (value: unknown): string | null => (typeof value === 'string' && value.trim() !== '' ? value.trim() : null)
const joined = (...sentences: readonly (string | null)[]): string =>
  sentences.filter((sentence) => sentence !== null).join(' ')

type Explain = (context: Readonly<Record<string, unknown>>) => Explanation

/** By kind and state. The command's `error` is one of the specification's own sentences. */
const known: Readonly<Record<string, Explain>> = {
  'command uncertain': (context) => ({
    title: 'Outcome unknown',
    sentence: joined(
      'The request may have reached the agent, and no answer came back.',
      text(context['error']),
      'Nothing is resent by itself: look at the task, then decide whether to send again.',
    ),
  }),
  'command failed': (context) => ({
    title: 'Not delivered',
    sentence: joined(text(context['error']), 'The agent did nothing with it, so it is safe to send it again.'),
  }),
  'subscription stopped': (context) => ({
    title: 'No longer followed',
    sentence: joined(
      'The agent or its task is gone, so nothing new will appear on the task.',
      reason(context['reason']),
      'A reply that is delivered to the task starts following again.',
    ),
  }),
  'ownership overdue': () => ({
    title: 'Overdue',
    sentence: 'The due time has passed. Finish the task, or set a later time.',
  }),
  'ownership escalated': () => ({
    title: 'Escalated',
    sentence: 'The due time passed and the task was handed on by the escalation rule.',
  }),
}

function reason(value: unknown): string | null {
  const said = text(value)
  return said === null ? null : `Reason: ${said}${/[.!?]$/.test(said) ? '' : '.'}`
}

/** A lease that ran out while there was work: another worker takes over, or none is running. */
function abandoned(actor: ActorDetail, nowMs: number): Explanation | null {
  if (actor.work === null || actor.lease === null || Date.parse(actor.lease.until) > nowMs) return null
  return {
    title: 'Its worker is silent',
    sentence:
      `${actor.lease.owner} held "${actor.work.id}" and stopped renewing its lease. ` +
      'Another worker takes over within seconds; if none does, no worker is running.',
  }
}

/** Null for an actor that needs nobody. */
export function whyAttention(
  actor: ActorDetail,
  definition: ChartDefinition | undefined,
  nowMs: number,
): Explanation | null {
  const silent = abandoned(actor, nowMs)
  if (silent) return silent
  if (!definition) return null
  const tagged = liveLeaves(activeNodes(definition, actor.value)).filter((node) => node.tags.includes('attention'))
  for (const node of tagged) {
    const explain = known[`${actor.kind} ${node.key}`]
    if (explain) return explain(actor.context)
    return { title: node.key, sentence: node.description ?? 'Its machine marks this state for a person to look at.' }
  }
  return null
}
