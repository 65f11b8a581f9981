/**
 * What waits and who works: the shapes that `/api/supervisor` and `/api/queues` answer with, as schemas that the browser
 * checks with. Does not own the reading (persistence/queue-views.ts) or what a person is told (domain/actor-explanation.ts).
 */
import * as z from 'zod/mini'
import { StateValueSchema } from './actor.ts'

/** Counting stops here: one more stands for "more than". Reading a longer queue would cost more than knowing its length helps. */
export const queueCountLimit = 10_000
export const attentionCountLimit = 1_000

const when = z.nullable(z.string())

export const KindQueue = z.object({
  kind: z.string(),
  /** Due and held by nobody: work to begin, leases that ran out, timers to ring. */
  due: z.number(),
  /** Since when the oldest of them is due. */
  oldestDueAt: when,
  /** Actors that need a person. */
  attention: z.number(),
  /** The agent that most of what is under way is for, in all processes; null where nothing is, or nothing for an agent. */
  busiest: z.nullable(z.object({ name: z.string(), held: z.number() })),
  /** Of these, those for whose sake an agent's work goes on unseen: of tasks to be followed, of agents to be asked. Not of removed agents. */
  unseen: z.number(),
})
export type KindQueue = z.infer<typeof KindQueue>

/** Leases of one process for one kind of actor. */
export const HeldLeases = z.object({
  /** The process, as it names itself in leases: host, process id, run. */
  owner: z.string(),
  kind: z.string(),
  held: z.number(),
  /** Of these, how many ran out and were not taken over yet. */
  expired: z.number(),
  oldestSince: when,
  /** When the first of them runs out unless it is renewed. */
  nextEndAt: z.string(),
})
export type HeldLeases = z.infer<typeof HeldLeases>

/** Commands that no agent was sent yet, and those whose request may be on the wire. */
export const OpenCommands = z.object({ pending: z.number(), dispatching: z.number(), oldestPendingAt: when })
export type OpenCommands = z.infer<typeof OpenCommands>

/** What an outage is one of. */
const OutageCause = z.enum(['database', 'artifacts'])
export type OutageCause = z.infer<typeof OutageCause>

/**
 * When something was, as a process tells it: `at` by the clock of its host, which may be off by any time, and how long before it told.
 * What is judged is judged by the age; one that is absent is of the release before.
 */
const told = { at: z.string(), agoMs: z.optional(z.number()) }

/** One supervised loop of a process. */
export const LoopView = z.object({
  name: z.string(),
  /** `left`: to workers in processes of their own. `off`: before the supervisor runs, and after it drained. */
  state: z.enum(['up', 'restarting', 'left', 'off']),
  /** Failures that it was started again after, of those the supervisor remembers. */
  restarts: z.number(),
  lastFailure: z.nullable(z.object({ message: z.string(), ...told })),
  /** When the loop last met an outage, and how long it waited then. The release before tells no cause, and means the database. */
  lastOutage: z.nullable(z.object({ ...told, pauseMs: z.number(), cause: z.optional(OutageCause) })),
  /** Work of this kind: places of this process, those taken, and how many one agent may take. Null for a loop without work. */
  places: z.nullable(z.object({ taken: z.number(), limit: z.number(), perAgent: z.number() })),
})
export type LoopView = z.infer<typeof LoopView>

/** What a process says of itself. */
export const ProcessView = z.object({
  /** As in its leases. */
  owner: z.string(),
  /** Whether it does background work, or leaves that to workers in processes of their own. */
  works: z.boolean(),
  /** Its version. The release before this tells none. */
  release: z.optional(z.string()),
  loops: z.array(LoopView),
  parser: z.object({
    threads: z.number(),
    /** Tasks given to threads and not answered yet, how many of them wait for a thread, and their bytes. */
    underWay: z.number(),
    queued: z.number(),
    bytesUnderWay: z.number(),
    /** Given up, because their thread died or took too long, or none was free; why is in the log. */
    tasksLost: z.number(),
  }),
  database: z.object({
    profile: z.enum(['pglite', 'postgresql']),
    inUse: z.number(),
    idle: z.number(),
    waiting: z.number(),
    /** What its last two answers to small writes took at the least, milliseconds; absent before there were two, and from the release before. */
    answerMs: z.optional(z.number()),
  }),
})
export type ProcessView = z.infer<typeof ProcessView>

/** `GET /api/supervisor`: the live supervisor of the process that answers. It is never persisted, so it has no log. */
export const SupervisorAnswer = z.object({
  supervisor: z.object({
    value: StateValueSchema,
    machineVersion: z.string(),
    /** Loops that failed and were started again, since the process began. */
    restarts: z.number(),
    lastFailure: z.nullable(z.string()),
  }),
  process: ProcessView,
})
export type SupervisorAnswer = z.infer<typeof SupervisorAnswer>

/** A process as it last told of itself, every five seconds; null: in the words of another release. */
export const ToldProcess = z.object({
  owner: z.string(),
  /** Both by the database's clock: hosts' clocks differ. */
  firstSeenAt: z.string(),
  seenAt: z.string(),
  /** Whether it holds any lease, of whichever organization, also one that ran out. */
  holds: z.boolean(),
  told: z.nullable(SupervisorAnswer),
})
export type ToldProcess = z.infer<typeof ToldProcess>

/** `GET /api/queues`: one organization's, whichever processes work on them. `at` is the database's clock. */
export const QueuesAnswer = z.object({
  at: z.string(),
  kinds: z.array(KindQueue),
  leases: z.array(HeldLeases),
  commands: OpenCommands,
  /** Every process on the database, for they work for every organization; none where there can be only the one that answers. */
  processes: z.array(ToldProcess),
})
export type QueuesAnswer = z.infer<typeof QueuesAnswer>
