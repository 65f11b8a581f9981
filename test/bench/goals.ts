/**
 * What we want of the figures, in one place, and whether a run met it: by the middle of its rounds. Does not measure anything, and says
 * nothing of what was not asked for.
 */
import { figure, table } from './figures.ts'

interface Goal {
  readonly words: string
  readonly least?: number
  readonly most?: number
}

const goals = {
  throughput: { words: 'commands over HTTP, PostgreSQL, done: graphile-worker’s bare jobs = 1', least: 2 },
  growth: { words: 'the same beside a million finished commands: beside 10,000 = 1', least: 0.9 },
  embedded: { words: 'commands over HTTP, embedded, done: PostgreSQL = 1', least: 0.3 },
  firstByte: { words: 'accept → first byte at the agent, idle, p50: graphile-worker’s start = 1', most: 1 },
  stall: { words: 'worst stall of a light route beside eight streams of 75 KB: parsing in place = 1', most: 0.4 },
  stallOfLarge: { words: 'the same in events of 300 KB', most: 0.4 },
  lists: { words: 'the dearest page among the most tasks, p50: among 1,000 = 1', most: 3 },
  torrent: {
    words: 'a light route beside 100 MiB of one task, p99, the worse of both databases and sizes, ms',
    most: 100,
  },
  freshness: { words: '2,000 pages hear of one change, p99, ms', most: 1_000 },
  start: { words: 'second start, embedded, ms', most: 3_000 },
} as const satisfies Readonly<Record<string, Goal>>

export type GoalName = keyof typeof goals

/** Tells what was measured of a goal. */
export type Judge = (name: GoalName, measured: number) => void

export class Verdicts {
  readonly #measured = new Map<GoalName, number>()

  readonly judge: Judge = (name, measured) => void this.#measured.set(name, measured)

  /** What was measured and is not what we want. */
  get missed(): readonly GoalName[] {
    return [...this.#measured].flatMap(([name, measured]) => (isMet(goals[name], measured) ? [] : [name]))
  }

  table(): string {
    const rows = [...this.#measured].map(([name, measured]) => {
      const goal: Goal = goals[name]
      return [
        goal.words,
        figure(measured),
        goal.least === undefined ? `at most ${goal.most}` : `at least ${goal.least}`,
        isMet(goal, measured) ? 'met' : 'missed',
      ]
    })
    return rows.length === 0 ? '' : table('goals', ['what', 'measured', 'goal', ''], rows)
  }
}

/** What is no number was not met. */
const isMet = ({ least = -Infinity, most = Infinity }: Goal, measured: number): boolean =>
  measured >= least && measured <= most
