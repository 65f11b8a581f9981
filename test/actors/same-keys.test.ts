/** Two processes accept the same commands at the same time, asked for in another order: each key once, and nobody waits in a circle. */
import { sql } from 'slonik'
import { v7 as newId } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insertCommands, type NewCommand } from '../../persistence/commands.ts'
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
    messageId: newId(),
    title: null,
    body: { action: 'send', tenant: '', text: 'x' },
    taskId: null,
    skillId: null,
    status: 'pending',
  })

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
})
