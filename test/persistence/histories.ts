/**
 * Random histories of tasks, told to a real system: whatever agents may say, in both protocol versions, by any source,
 * repeated and shuffled, in any grouping into commits. And the rows that came of it, as text, and ways to damage them. Does
 * not own what must hold of a rebuild (rebuild.test.ts).
 */
import fc from 'fast-check'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import { encodeEvent, type Dialect } from '../../a2a/server.ts'
import type { Message, Part, StreamResponse, TaskStatus } from '../../a2a/messages.ts'
import { acceptCommand, newCommand } from '../../actors/command.ts'
import type { Operation } from '../../actors/loop/operation.ts'
import { observed, parseTask } from '../../actors/threads/stream-parser.ts'
import type { CommandBody } from '../../domain/command-body.ts'
import type { Report, Source, ToldFact } from '../../domain/fact.ts'
import type { Observation } from '../../domain/observation.ts'
import { longValue } from '../../domain/part-text.ts'
import { titleFrom } from '../../domain/task.ts'
import type { Database } from '../../persistence/database.ts'
import type { Connection } from '../../persistence/connection.ts'
import { observe } from '../support/observing.ts'
import type { RunningSystem } from '../support/system.ts'

/** How agents speak; null: the event is observed as it stands, without having crossed a wire. */
export const dialects: readonly Pick<Dialect, 'binding' | 'version'>[] = [
  { binding: 'JSONRPC', version: '1.0' },
  { binding: 'HTTP+JSON', version: '1.0' },
  { binding: 'JSONRPC', version: '0.3' },
]

// --- what an agent may say ---------------------------------------------------------------------------------------------

const words = fc.oneof(
  fc.constantFrom('', 'one', 'two', 'a\0b', '\ud800', 'ünïcode ✓', '<b>'),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
)
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>({ 2: 'b', 1: 'a', __proto__: null }, null, 0, false),
)
/** Most of its event, so that it is kept there. */
const long = words.map((text) => `${text}😀`.padEnd(longValue, 'é'))
const part: fc.Arbitrary<Part> = fc.oneof(
  { weight: 4, arbitrary: words.map((text): Part => ({ text })) },
  { weight: 1, arbitrary: long.map((text): Part => ({ text, metadata: { value: '' } })) },
  { weight: 1, arbitrary: long.map((text): Part => ({ data: { text } })) },
  json.map((data): Part => ({ data })),
  fc.webUrl().map((url): Part => ({ url, filename: 'there' })),
  {
    weight: 2,
    arbitrary: fc
      .uint8Array({ maxLength: 24 })
      .map((bytes): Part => ({ raw: Buffer.from(bytes).toString('base64'), mediaType: 'image/png' })),
  },
)
const parts = fc.array(part, { minLength: 1, maxLength: 3 })
const moment = fc.option(
  fc.oneof(
    fc.nat(40).map((n) => new Date(Date.parse('2026-11-20T12:00:00Z') + n * 1000).toISOString()),
    fc.constantFrom('2026-11-20T12:00:05+02:00', 'yesterday', '2026-11-20T12:00:05.123456Z'),
  ),
  { nil: undefined },
)
const state = fc.constantFrom(
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_COMPLETED',
  'paused',
)
const message = fc
  .record({ n: fc.nat(12), role: fc.constantFrom('ROLE_AGENT' as const, 'ROLE_USER' as const), parts })
  .map(({ n, ...rest }): Message => ({ messageId: `m${n}`, ...rest }))
const artifact = fc.record(
  {
    artifactId: fc.constantFrom('a', 'b', 'c'),
    parts,
    name: words,
    description: words,
    extensions: fc.constant<string[]>(['https://e.example/x']),
  },
  { requiredKeys: ['artifactId', 'parts'] },
)
const withoutTime = ({
  timestamp,
  ...rest
}: Omit<TaskStatus, 'timestamp'> & { timestamp?: string | undefined }): TaskStatus =>
  timestamp === undefined ? rest : { ...rest, timestamp }
const status = fc
  .record({ state, timestamp: moment, message: fc.option(message, { nil: undefined }) })
  .map(({ message: said, ...rest }) => withoutTime({ ...rest, ...(said ? { message: said } : {}) }))

/** One event about a task. */
const saying = (id: string): fc.Arbitrary<StreamResponse> => {
  const contextId = fc.constantFrom(`context of ${id}`, 'another')
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .record({ contextId, status })
        .map((of): StreamResponse => ({ statusUpdate: { taskId: id, ...of } })),
    },
    {
      weight: 6,
      arbitrary: fc
        .record({ contextId, artifact, append: fc.boolean(), lastChunk: fc.boolean() })
        .map((of): StreamResponse => ({ artifactUpdate: { taskId: id, ...of } })),
    },
    {
      weight: 2,
      arbitrary: fc
        .record({
          status,
          artifacts: fc.array(artifact, { maxLength: 2 }),
          history: fc.array(message, { maxLength: 3 }),
        })
        .chain((of) =>
          fc
            .option(contextId, { nil: undefined })
            .map((context) => ({ ...of, ...(context ? { contextId: context } : {}) })),
        )
        .map((of): StreamResponse => ({ task: { id, ...of } })),
    },
    { weight: 1, arbitrary: message.map((said): StreamResponse => ({ message: { ...said, taskId: id } })) },
  )
}

/** One report: some events by one source, in one dialect. */
export interface Told {
  readonly source: Exclude<Source, 'sent'>
  readonly dialect: number
  readonly events: readonly StreamResponse[]
  /** The version that was known when it was asked for: more may have been heard since. */
  readonly asked?: number | undefined
}

export interface History {
  readonly id: string
  readonly body: Omit<CommandBody, 'action' | 'tenant'>
  /** What answers the command. */
  readonly reply: StreamResponse
  /** What is told later; the reports of one entry are told at once. */
  readonly later: readonly (readonly Told[])[]
}

/** A person's words are refused at the door where they are no Unicode. */
const asked = words.map((text) => text.toWellFormed())
const body = fc
  .record({
    text: asked.filter((text) => text !== ''),
    parts: fc.array(
      asked.map((text): Part => ({ text })),
      { maxLength: 2 },
    ),
    skillId: fc.option(fc.constant('skill'), { nil: undefined }),
    references: fc.uniqueArray(fc.constantFrom('r1', 'r2', 'r3'), { maxLength: 3 }),
    messageId: fc.option(fc.constantFrom('m1', 'mine'), { nil: undefined }),
  })
  .map(({ skillId, references, messageId, ...rest }) => ({
    ...rest,
    ...(skillId === undefined ? {} : { skillId }),
    ...(messageId === undefined ? {} : { messageId }),
    config: { referenceTaskIds: references },
  }))

/** Events of which some are repeated, in another order, after the ones before them or among them. */
const shuffled = (events: readonly StreamResponse[]): fc.Arbitrary<readonly StreamResponse[]> =>
  events.length === 0
    ? fc.constant([])
    : fc
        .array(fc.nat(events.length - 1), { maxLength: events.length * 2 })
        .map((order) => order.flatMap((i) => events[i] ?? []))

export const histories = (id: string): fc.Arbitrary<History> =>
  fc.array(saying(id), { maxLength: 14 }).chain((events) =>
    fc.record({
      id: fc.constant(id),
      body,
      // A direct message makes no task that could be followed; it is told once, and then there are only other tasks' words.
      reply: fc.oneof(
        { weight: 5, arbitrary: saying(id) },
        message.map((said) => ({ message: said })),
      ),
      later: fc.array(
        fc.array(
          fc.record({
            source: fc.constantFrom('stream' as const, 'stream' as const, 'poll' as const, 'push' as const),
            dialect: fc.nat(dialects.length - 1),
            asked: fc.option(fc.nat(12), { nil: undefined }),
            events: fc.oneof(fc.constant(events), shuffled(events)),
          }),
          { minLength: 1, maxLength: 2 },
        ),
        { maxLength: 5 },
      ),
    }),
  )

// --- telling it --------------------------------------------------------------------------------------------------------

const tell: Operation<ToldFact, null> = {
  name: 'tell',
  run: (_batch, facts) =>
    Promise.resolve(facts.map((fact) => ({ kind: 'done' as const, result: null, effects: { told: [fact] } }))),
}

/** Events over a wire and through the parser, as a stream brings them. */
export function overTheWire(events: readonly StreamResponse[], dialect: number): Observation[] {
  const endpoint = { url: 'http://agent.example/', ...(dialects[dialect] ?? { binding: 'JSONRPC', version: '1.0' }) }
  const frames = events.map((event) =>
    Buffer.from(encodeEvent({ ...endpoint, rpcId: 'r', mediaType: 'application/json' }, event)),
  )
  const parsed = parseTask({ kind: 'frames', endpoint, requestId: 'r', frames })
  return parsed.flatMap((event) => (event.kind === 'observation' ? [event.observation] : []))
}

const observeRaw = (event: StreamResponse): Observation =>
  observe(event, (raw) => ({ digest: raw.length.toString(16).padStart(64, '0'), size: raw.length, href: '' }))

const done = (work: string, kind: string) => ({ type: `xstate.done.actor.${work}`, output: { kind } })

/** Has a person send, an agent reply, and the rest told. Resolves once everything is committed. */
export async function live(running: RunningSystem, agentId: string, history: History): Promise<void> {
  const { organizationId } = running.viewer
  const body = { action: 'send' as const, tenant: '', ...history.body }
  const of = {
    agentId,
    body,
    idempotencyKey: uuidv7(),
    taskId: null,
    skillId: body.skillId ?? null,
    status: 'pending' as const,
  }
  // Through the operation rather than the door: the agent has no card that could offer a skill.
  const asked = { command: newCommand(running.viewer, of, uuidv7) }
  const { command } = await running.system.runtime.perform(acceptCommand, asked)
  const ref = { kind: 'command', id: command.id }
  const step = { told: [], lease: null, cause: 'test' }
  await running.system.runtime.step({
    ...step,
    ref,
    event: done('discover', 'found'),
  })
  const [reply = observeRaw(history.reply)] = overTheWire([history.reply], 0)
  await running.system.runtime.step({
    ...step,
    ref,
    event: done('deliver', 'replied'),
    told: [{ type: 'agent.reported', report: replied(agentId, command, history, reply) }],
  })
  for (const reports of history.later)
    await Promise.all(
      reports.map(({ source, dialect, asked: known, events }) => {
        const observations = overTheWire(events, dialect)
        const of = { agentId, tenant: '', source, command: null, remoteTaskId: history.id, observations }
        const report: Report = { ...of, ...(source === 'poll' && known !== undefined && { asked: known }) }
        const fact = { type: 'agent.reported' as const, report }
        return running.system.runtime.perform(tell, { organizationId, subjectId: command.id, fact })
      }),
    )
}

function replied(
  agentId: string,
  { id, messageId, createdAt }: { id: string; messageId: string; createdAt: string },
  { body: said }: History,
  reply: Observation,
): Report {
  const text: Part[] = said.text ? [{ text: said.text, mediaType: 'text/plain' }] : []
  const { observation } = observed({
    message: {
      messageId,
      role: 'ROLE_USER',
      parts: [...text, ...((said.parts ?? []) as Part[])],
      ...(reply.taskId === null ? {} : { taskId: reply.taskId }),
      ...(reply.contextId === null ? {} : { contextId: reply.contextId }),
    },
  })
  const sent = { ...observation, messages: observation.messages.map((each) => ({ ...each, timestamp: createdAt })) }
  const { skillId = null, config } = said
  const title = titleFrom(said.text ?? '')
  const referenceTaskIds = config?.referenceTaskIds ?? []
  const command = { id, title, skillId, referenceTaskIds, sent, reply: reply.event, continues: null }
  return { agentId, tenant: '', source: 'reply', command, remoteTaskId: null, observations: [reply] }
}

// --- the rows, and harm to them ----------------------------------------------------------------------------------------

const projections = [
  ['task', 'id'],
  ['task_message', 'task_id'],
  ['task_artifact', 'task_id'],
  ['task_artifact_part', 'task_id'],
  ['task_transition', 'task_id'],
  ['task_reference', 'task_id'],
  ['task_bytes', 'task_id'],
] as const

/** Every row of every projection, as text, in one order. */
export async function rowsOf(db: Connection): Promise<readonly string[]> {
  const rows: string[] = []
  for (const [table] of projections) {
    const name = sql.identifier([table])
    rows.push(
      ...(await db.anyFirst(sql.type(z.object({ row: z.string() }))`
        select ${table} || ' ' || row(t.*)::text collate "C" as row from ${name} t order by 1`)),
    )
  }
  const sizes = await db.anyFirst(sql.type(z.object({ row: z.string() }))`
    select 'artifact ' || digest || ' ' || size as row from artifact order by 1`)
  return [...rows, ...sizes]
}

/** What a careless hand, a bug or a bad disk may do to projections. Each leaves the events alone. */
const harms: Readonly<Record<string, (task: string) => ReturnType<typeof sql.unsafe>>> = {
  'lost messages': (id) => sql.unsafe`delete from task_message where task_id = ${id} and position / 1024 % 2 = 0`,
  'forged words': (id) =>
    sql.unsafe`update task_message set parts = '[]', role = 'user', said_at = now() where task_id = ${id}`,
  'a message too many': (
    id,
  ) => sql.unsafe`insert into task_message (task_id, message_id, position, role, parts, said_at, from_status)
    values (${id}, 'ghost', 7, 'agent', '[]', now(), false)`,
  'lost parts': (id) => sql.unsafe`delete from task_artifact_part where task_id = ${id} and position >= 1`,
  'values sought elsewhere': (id) =>
    sql.unsafe`update task_artifact_part set value_from = 1, value_bytes = 100 where task_id = ${id}`,
  'values forgotten': (id) => sql.unsafe`update task_artifact_part set value_event = null where task_id = ${id}`,
  'parts too many': (id) => sql.unsafe`insert into task_artifact_part (task_id, artifact_id, position, part)
    select task_id, artifact_id, 999, '{}' from task_artifact where task_id = ${id}`,
  'forged artifacts': (
    id,
  ) => sql.unsafe`update task_artifact set name = 'x', parts_digest = '', part_count = 0, update_count = 99,
    complete = not complete, position = 0 where task_id = ${id}`,
  'lost artifacts': (id) => sql.unsafe`delete from task_artifact where task_id = ${id}`,
  'lost transitions': (id) => sql.unsafe`delete from task_transition where task_id = ${id} and position > 0`,
  'lost references': (id) => sql.unsafe`delete from task_reference where task_id = ${id}`,
  'lost bytes': (id) =>
    sql.unsafe`with b as (delete from task_bytes where task_id = ${id} returning digest) select from b`,
  'a forged head': (
    id,
  ) => sql.unsafe`update task set state = 'TASK_STATE_COMPLETED', state_at = now(), version = 77, events = 3,
    title = 'x', skill_id = 'y', command_id = null, context_id = 'z', created_at = now(), updated_at = now() where id = ${id}`,
}
export const harm: fc.Arbitrary<readonly string[]> = fc.subarray(Object.keys(harms), { minLength: 1 })

export async function damage(db: Database['pool'], task: string, kinds: readonly string[]): Promise<void> {
  for (const kind of kinds) {
    const statement = harms[kind]?.(task)
    if (!statement) throw new Error(`There is no harm called ${kind}.`)
    await db.query(statement)
  }
  // Rows of bytes that nobody refers to any more may go too: the events have their sizes.
  await db.query(
    sql.unsafe`delete from artifact a where not exists (select from task_bytes b where b.digest = a.digest)`,
  )
}
