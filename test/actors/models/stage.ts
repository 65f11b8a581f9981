/**
 * The real runtime, kinds, reactions and rows on a fresh database, with the test as the only worker: it claims, reports, lets
 * leases run out and timers ring, one at a time, so that a model can be asked the same. Owns no expectation.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import type { EventObject } from 'xstate'
import { z } from 'zod'
import { Commands } from '../../../actors/acceptance.ts'
import { Changes } from '../../../actors/loop/changes.ts'
import { reactions } from '../../../actors/reactions.ts'
import type { Reactions } from '../../../actors/loop/reaction.ts'
import type { Operation } from '../../../actors/loop/operation.ts'
import { Runtime } from '../../../actors/loop/runtime.ts'
import { instruments, System } from '../../../actors/system.ts'
import type { Viewer } from '../../../domain/access.ts'
import type { Fact, Report, ReportingCommand, ToldFact } from '../../../domain/fact.ts'
import type { Observation } from '../../../domain/observation.ts'
import type { ActorRef, Snapshot } from '../../../persistence/actors.ts'
import type { Database, Profile } from '../../../persistence/database.ts'
import { claimActors, type DueActor } from '../../../persistence/leases.ts'
import { freshDatabase, type bothDatabases } from '../../support/databases.ts'
import { capturedLog } from '../../support/system.ts'

export interface Stage {
  readonly db: Database
  readonly profile: Profile
  readonly runtime: Runtime
  readonly commands: Commands
  readonly changes: Changes
  readonly viewer: Viewer
  readonly agentId: string
  registerAgent(): Promise<string>
  /** Brings an actor to life as a reaction would. */
  spawn(ref: ActorRef): Promise<void>
  /** Claims this actor as a worker does; null where it is not due. Whatever else is due waits meanwhile. */
  claim(ref: ActorRef): Promise<DueActor | null>
  /** What a worker reports under its claim. Rejects with LeaseLost. */
  report(claim: DueActor, event: EventObject, told?: readonly Fact[]): Promise<Snapshot>
  /** The lease of an actor runs out, by the database's clock. */
  expire(ref: ActorRef): Promise<void>
  /** The actor's timer rings, however long it would have been. */
  ring(ref: ActorRef, event: EventObject): Promise<Snapshot>
  snapshot(ref: ActorRef): Promise<Snapshot & { readonly revision: number }>
  /** From now on no actor that lives falls due by itself: what comes is about others. */
  retire(): Promise<void>
  /** A task that an agent has just told of, by the agent's name for it. Resolves with its local id. */
  beginTask(remoteId: string, state: string): Promise<string>
  /** What a source says of a task, told under the name of a living actor. */
  tell(
    ref: ActorRef,
    report: Pick<Report, 'source' | 'remoteTaskId'>,
    seen: Observation,
    isReply?: boolean,
  ): Promise<void>
  close(): Promise<void>
}

const Row = z.custom<Snapshot & { readonly revision: number }>()
const LocalId = z.object({ id: z.string() })
const leaseMs = 60_000
/** Nobody's wait is so long. */
const farOffDays = 365_000

const spawning: Operation<{ ref: ActorRef; organizationId: string }, null> = {
  name: 'spawning',
  run: (_batch, inputs) =>
    Promise.resolve(
      inputs.map(({ ref, organizationId }) => {
        const spawns = [{ ref, lane: null, isNew: true, organizationId, cause: 'test' }]
        return { kind: 'done' as const, result: null, effects: { spawns } }
      }),
    ),
}

const telling: Operation<ToldFact, null> = {
  name: 'telling',
  run: (_batch, facts) =>
    Promise.resolve(facts.map((fact) => ({ kind: 'done' as const, result: null, effects: { told: [fact] } }))),
}

/** The command that an agent's reply is told of, where nothing of it matters. */
export const answering = (): ReportingCommand => ({
  id: uuidv7(),
  title: null,
  skillId: null,
  referenceTaskIds: [],
  sent: null,
  reply: '{}',
  continues: null,
})

export const statusOf = (taskId: string, state: string, timestamp: string | null): Observation => ({
  kind: 'statusUpdate',
  taskId,
  contextId: null,
  event: JSON.stringify({ statusUpdate: { taskId, status: { state, timestamp } } }),
  status: { state, timestamp },
  messages: [],
  artifacts: [],
  stored: [],
})

/** `living`: the reactions of the deployment; with push, or without. `isDiscovered`: whether agents are at hand, so that commands begin at once. */
export async function openModelStage(
  kind: (typeof bothDatabases)[number],
  living: Reactions = reactions,
  isDiscovered = false,
): Promise<Stage> {
  const fresh = await freshDatabase(kind)
  const { db } = fresh
  const policy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] } as const
  const { log } = capturedLog()
  // Never started: its kinds and its people are wanted, its loops are the test.
  const house = {
    artifactDirectory: '/nonexistent',
    extensionHost: 'signalbox.example',
    sidebandUris: [],
    parserThreads: 1,
  }
  const system = new System({ db, log, works: false, policy, ...house })
  const viewer = await system.localAdministrator()
  const changes = new Changes()
  const runtime = new Runtime({
    db,
    kinds: system.kinds,
    reactions: living,
    changes,
    instruments,
    intake: { owner: 'model', takeRoom: () => false, giveBack: () => undefined, newToken: uuidv7 },
    log,
    launch: () => undefined,
  })
  const { organizationId } = viewer
  const registerAgent = async (): Promise<string> =>
    (await system.agents.register(viewer, `http://agent.example/${uuidv7()}/card.json`)).id
  const agentId = await registerAgent()
  const extensionHost = house.extensionHost
  const commands = new Commands({ db, runtime, instruments, extensionHost, isDiscovered: () => isDiscovered })

  const close = async (): Promise<void> => {
    await runtime.idle()
    await fresh.close()
  }
  const people = { db, profile: fresh.profile, runtime, commands, changes, viewer, agentId, registerAgent, close }
  return { ...people, ...workOn(db, runtime, organizationId), ...talkOn(db, runtime, organizationId, agentId) }
}

type Work = Pick<Stage, 'spawn' | 'claim' | 'report' | 'expire' | 'ring' | 'snapshot' | 'retire'>

function workOn(db: Database, runtime: Runtime, organizationId: string): Work {
  return {
    spawn: async (ref) => void (await runtime.perform(spawning, { ref, organizationId })),
    claim: async (ref) => {
      const wanted = { kind: ref.kind, limit: 2, leaseMs, fullLanes: [] }
      const by = { owner: 'model', exclusive: false, held: [] }
      const due = await aside(db, ref, () => claimActors(db.pool, wanted, by))
      return due.find(({ id, claimed }) => id === ref.id && claimed) ?? null
    },
    report: ({ kind, id, leaseToken, work }, event, told = []) => {
      const lease = { token: leaseToken ?? '', work: work ?? '' }
      return runtime.step({ ref: { kind, id }, event, told, lease, cause: 'worker' })
    },
    expire: async ({ kind, id }) => {
      await db.pool.query(sql.unsafe`
        update actor set lease_until = now() - interval '1 second', wake_at = now() - interval '1 second'
        where kind = ${kind} and id = ${id} and lease_token is not null`)
    },
    ring: (ref, event) =>
      runtime.step({ ref, event, told: [], lease: null, cause: 'timer', dueBy: '9999-01-01T00:00:00.000Z' }),
    snapshot: ({ kind, id }) =>
      db.pool.one(sql.type(Row)`
        select snapshot->'value' as value, snapshot->'context' as context, snapshot->>'status' as status, revision
        from actor where kind = ${kind} and id = ${id}
        union all
        select snapshot->'value', snapshot->'context', snapshot->>'status', revision
        from actor_archive where kind = ${kind} and id = ${id}`),
    retire: async () =>
      void (await db.pool.query(sql.unsafe`update actor set wake_at = null where wake_at is not null`)),
  }
}

type Talk = Pick<Stage, 'beginTask' | 'tell'>

function talkOn(db: Database, runtime: Runtime, organizationId: string, agentId: string): Talk {
  return {
    beginTask: async (remoteId, state) => {
      const report = { agentId, tenant: '', source: 'reply' as const, command: answering(), remoteTaskId: null }
      const observations = [statusOf(remoteId, state, null)]
      const fact = { type: 'agent.reported' as const, report: { ...report, observations } }
      await runtime.perform(telling, { organizationId, subjectId: report.command.id, fact })
      return db.pool.oneFirst(
        sql.type(LocalId)`select id from task where agent_id = ${agentId} and remote_id = ${remoteId}`,
      )
    },
    tell: async (ref, of, seen, isReply = false) => {
      // Whoever looks sees a task.
      const observations = [of.source === 'poll' ? { ...seen, kind: 'task' as const } : seen]
      const report = { agentId, tenant: '', command: isReply ? answering() : null, observations, ...of }
      const told = [{ type: 'agent.reported' as const, report }]
      await runtime.step({ ref, event: null, told, lease: null, cause: 'test' })
    },
  }
}

/**
 * With all others of a kind out of the way: a claim that is given back would cost them the token of a lease that ran out, and
 * whoever held that is heard until somebody takes over.
 */
async function aside<T>(db: Database, { kind, id }: ActorRef, work: () => Promise<T>): Promise<T> {
  const move = (days: number) =>
    db.pool.query(sql.unsafe`
      update actor set wake_at = wake_at + ${days}::int * interval '1 day'
      where kind = ${kind} and id <> ${id} and wake_at is not null`)
  await move(farOffDays)
  try {
    return await work()
  } finally {
    await move(-farOffDays)
  }
}
