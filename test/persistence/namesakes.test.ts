/** Commands whose messages bear one id: which of them make evidence of another worthless, and what is read to know it. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CommandStatus } from '../../domain/command.ts'
import { refusals } from '../../domain/refusal.ts'
import { insertCommands } from '../../persistence/commands.ts'
import { namesakesElsewhereOf, namesakesOf, readNamesakes, readNamesakesElsewhere } from '../../persistence/evidence.ts'
import { at, idOf, newCommand, ours, placeCommands } from '../support/command-rows.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { rowsRead } from '../support/rows-read.ts'

const scope = { agentId: ours, tenant: '' }
/** What an agent has seen: more than there are on a page, of an agent that crashed. */
const looked = 200
const others = 20_000

describe.each(bothDatabases)('commands of one message id on %s', (database) => {
  let fresh: FreshDatabase
  let number = 0
  beforeAll(async () => {
    fresh = await freshDatabase(database)
    await placeCommands(fresh.db, 0)
  })
  afterAll(() => fresh.close())

  /** One more command, that stands so; `messageId` null: its caller gave none. */
  async function placed(
    messageId: string | null,
    status: CommandStatus,
    more: { error?: string; tenant?: string } = {},
  ) {
    const id = idOf(++number)
    const body = { action: 'send' as const, tenant: more.tenant ?? '', text: 'Do it.' }
    const command = newCommand(number, { messageId: messageId ?? id, status, body })
    await fresh.db.pool.transaction((tx) => insertCommands(tx, [command], at(0)))
    await fresh.db.pool.query(sql.unsafe`update command set error = ${more.error ?? null} where id = ${id}`)
    return { commandId: id, messageId: messageId ?? id }
  }

  it.each<[string, CommandStatus, string | undefined, boolean]>([
    ['is being sent', 'dispatching', undefined, true],
    ['was answered', 'succeeded', undefined, true],
    ['is in doubt, settled or not', 'uncertain', undefined, true],
    ['was answered for another skill', 'failed', refusals['skill.crossed'], true],
    ['was refused', 'failed', 'No.', false],
    ['was not sent yet', 'pending', undefined, false],
  ])('one that %s', async (_, status, error, isShared) => {
    const messageId = `same-${status}-${error}`
    const seen = await placed(messageId, 'uncertain')
    await placed(messageId, status, { tenant: 'another' })
    expect([...(await readNamesakes(fresh.db.pool, scope, [seen]))]).toEqual([])
    await placed(messageId, status, error === undefined ? {} : { error })
    expect([...(await readNamesakes(fresh.db.pool, scope, [seen]))]).toEqual(isShared ? [seen.commandId] : [])
  })

  it('whose caller gave no id is found by whoever bears its own', async () => {
    const first = await placed(null, 'uncertain')
    expect([...(await readNamesakes(fresh.db.pool, scope, [first]))]).toEqual([])
    const again = await placed(first.messageId, 'uncertain')
    const shared = await readNamesakes(fresh.db.pool, scope, [first, again])
    expect([...shared].toSorted()).toEqual([first.commandId, again.commandId])
  })

  it('are found among very many, all in doubt, without reading others', async () => {
    await fresh.db.pool.query(sql.unsafe`
      insert into command (id, organization_id, agent_id, person_id, idempotency_key, content_digest, action, tenant, message_id, body,
        status, unsettled_at, created_at, updated_at)
      select ('10000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${ours}, ${ours}, ${ours}, 'many-' || n, 'digest', 'send', '',
        'many-' || n / 2, '{}', 'uncertain', now(), now(), now()
      from generate_series(2, ${others + 1}) n`)
    await fresh.db.pool.query(sql.unsafe`analyze command`)
    const seen = Array.from({ length: looked }, (_, n) => ({
      commandId: `10000000-0000-7000-8000-${String(2 * n + 2).padStart(12, '0')}`,
      messageId: `many-${n + 1}`,
    }))
    expect((await readNamesakes(fresh.db.pool, scope, seen)).size).toBe(looked)
    const { command: read } = await rowsRead(fresh.db, namesakesOf(scope, seen))
    expect(read).toBeLessThanOrEqual(2 * looked)
    // As they are looked for by whoever reads the agent under another registration, and where they went to a hundred.
    await fresh.db.pool.query(sql.unsafe`
      insert into agent (id, organization_id, card_url, source, name)
      select ('20000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${ours}, 'http://agent.example/' || n, 'managed', 'Agent'
      from generate_series(0, 99) n`)
    const elsewhere = { agentId: '20000000-0000-7000-8000-000000000000', tenant: '' }
    const found = seen.map((each) => ({ ...each, taskId: null }))
    const agentsSeen = async () =>
      (await readNamesakesElsewhere(fresh.db.pool, elsewhere, found)).map(({ agentId }) => agentId)
    expect(await agentsSeen()).toEqual(seen.map(() => ours))
    await fresh.db.pool.query(sql.unsafe`
      update command set agent_id = ('20000000-0000-7000-8000-' || lpad((right(id::text, 12)::int % 99 + 1)::text, 12, '0'))::uuid
      where message_id like 'many-%'`)
    await fresh.db.pool.query(sql.unsafe`analyze command`)
    expect(new Set(await agentsSeen()).size).toBe(99)
    const { command: readElsewhere } = await rowsRead(fresh.db, namesakesElsewhereOf(elsewhere, found))
    expect(readElsewhere).toBeLessThanOrEqual(2 * looked)
  })
})
