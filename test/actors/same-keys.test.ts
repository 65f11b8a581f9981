/** Two processes accept the same commands at the same time, asked for in another order: each key once, and nobody waits in a circle. */
import { sql } from 'slonik'
import { v7 as newId } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ActorWrite } from '../../persistence/actors.ts'
import { insertCommands, insertCommandsAndActors, type NewCommand } from '../../persistence/commands.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'

describe('two batches that bring the same keys', () => {
  const [organizationId, agentId, personId] = [newId(), newId(), newId()]
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    const { pool } = fresh.db
    await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${organizationId}, 'o', 'o')`)
    await pool.query(sql.unsafe`
      insert into agent (id, organization_id, card_url, source, name)
      values (${agentId}, ${organizationId}, 'https://agent.example', 'managed', 'a')`)
  })
  afterAll(() => fresh.close())

  const command = (idempotencyKey: string): NewCommand => ({
    id: newId(),
    auditId: newId(),
    organizationId,
    agentId,
    personId,
    idempotencyKey,
    contentDigest: 'x',
    characters: 100,
    messageId: newId(),
    title: null,
    body: { action: 'send', tenant: '', text: 'x' },
    taskId: null,
    skillId: null,
    status: 'pending',
  })

  const actorRow = (id: string, createdAt: string): ActorWrite => ({
    kind: 'command',
    id,
    organizationId,
    lane: agentId,
    machineVersion: '1',
    revision: 1,
    snapshot: { value: { pending: 'discovering' }, context: {}, status: 'active' },
    work: 'discover',
    workStartedAt: null,
    timers: {},
    lease: { kind: 'none' },
    createdAt,
    fresh: true,
  })
  const logged = { machineVersion: '1', event: '{}', value: 'pending', facts: [], cause: 'test' }

  // PostgreSQL finds a circle after a second; without the one order two of three of these rounds ended in one.
  it('take them in one order', async () => {
    for (let round = 0; round < 8; round++) {
      const keys = Array.from({ length: 100 }, (_, i) => `${round}/${i}`)
      const accept = (wanted: readonly string[]) =>
        fresh.db.fly((tx) => insertCommands(tx, wanted.map(command), new Date().toISOString()))
      const taken = await Promise.all([accept(keys), accept(keys.toReversed())])
      expect(taken.map(({ size }) => size).toSorted((a, b) => a - b)).toEqual([0, 100])
    }
  })

  it('leave nothing of what they did not take: no row, no actor, no log, no fact', async () => {
    const mine = Array.from({ length: 20 }, (_, i) => command(`rows/${i}`))
    const theirs = mine.slice(10).map(({ idempotencyKey }) => command(idempotencyKey))
    const at = new Date().toISOString()
    const rowsOf = (commands: readonly NewCommand[]) => ({
      writes: commands.map(({ id }) => actorRow(id, at)),
      log: commands.map(({ id }) => ({ kind: 'command', id, revision: 1, ...logged })),
      outbox: commands.map(({ id }) => ({ organizationId, kind: 'command.accepted', subjectId: id, data: {} })),
      batchId: newId(),
      at,
    })
    const write = (commands: readonly NewCommand[]) =>
      fresh.db.fly((tx) => insertCommandsAndActors(tx, commands, rowsOf(commands)))
    expect((await write(theirs)).size).toBe(10)
    expect([...(await write(mine)).keys()].toSorted()).toEqual(mine.slice(0, 10).map(({ id }) => id))
    // Once more with the same ids, as an attempt does that comes late.
    expect((await write(mine)).size).toBe(0)
    const ids = sql.array(
      mine.map(({ id }) => id),
      'uuid',
    )
    expect(
      await fresh.db.pool.one(sql.unsafe`
        select (select count(*)::int from command where id = any(${ids})) as commands,
          (select count(*)::int from actor where id = any(${ids})) as actors,
          (select count(*)::int from actor_log where actor_id = any(${ids})) as logged,
          (select count(*)::int from fact where subject_id::uuid = any(${ids})) as told,
          (select count(*)::int from audit where subject_id::uuid = any(${ids})) as audited`),
    ).toEqual({ commands: 10, actors: 10, logged: 10, told: 10, audited: 10 })
  })
})
