/**
 * An answer that was on its way while more was heard of its task: it shows the task as it was when its agent was asked. Owns what of it does
 * not count. Does not know how it stands to what is known (actors/observe.ts).
 */
import type { Source } from './fact.ts'
import type { Observation } from './observation.ts'
import { isTerminal } from './task.ts'

/** How an observation stands to what is known. */
export interface Standing {
  /** It shows the task as it stands now, whatever the agent's clock says (actors/second-looks.ts). */
  readonly isPresent?: boolean
  /** It was asked for. */
  readonly answer?: Answer
  /** What did not count when it was told: it is told again, and nothing else of this is asked. */
  readonly passedOver?: PassedOver
}

export interface Answer {
  /** The task's version when the agent was asked. */
  readonly asked: number
  /** More was heard of the task since the agent was asked: an unfinished task is shown as it may have been. */
  readonly isBehind: boolean
  /** Whether a stream or a push told more since of an artifact, by the agent's id. */
  readonly isOvertaken: (artifactId: string) => boolean
}

export interface PassedOver {
  /** The state. */
  readonly status: boolean
  /** Artifacts, by the agent's ids. */
  readonly artifacts: readonly string[]
  /** Of our own words: the task's version when they left, where more was heard of it until they were told. They stand before that. */
  readonly since?: number
}

export const nothingPassedOver: PassedOver = { status: false, artifacts: [] }

/**
 * Artifacts that would lose the chunks that came since, for good where later ones follow; and a state that no time can place. The next look
 * tells. A reply's own state counts: it is the last word of what was asked. An end is an end, and shows all that was made.
 *
 * `isUnplaced`: its state is another than the known one, and one of the two has no time.
 */
export function passedOver(
  { status, artifacts }: Observation,
  source: Source,
  { asked, isBehind, isOvertaken }: Answer,
  isUnplaced: boolean,
): PassedOver {
  if (source === 'sent' && isBehind) return { ...nothingPassedOver, since: asked }
  if (status && isTerminal(status.state)) return nothingPassedOver
  return {
    status: isBehind && source === 'poll' && isUnplaced,
    artifacts: artifacts.map(({ artifactId }) => artifactId).filter(isOvertaken),
  }
}

/** The artifact of which it tells more, as a stream does; null of all else. */
export const toldBit = ({ kind, artifacts }: Observation, source: Source): string | null =>
  kind === 'artifactUpdate' && (source === 'stream' || source === 'push') ? (artifacts[0]?.artifactId ?? null) : null
