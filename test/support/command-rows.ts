/** Rows of commands, of one person to one agent, for tests of the tables alone: numbered, and under way since minute 0. */
import { sql } from 'slonik'
import type { Database } from '../../persistence/database.ts'
import { insertCommands, type NewCommand } from '../../persistence/commands.ts'

/** The organization, and what there is one of in it. */
export const ours = '00000000-0000-7000-8000-00000000000a'
export const idOf = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
export const at = (minute: number): string => new Date(Date.UTC(2026, 10, 22, 9, minute)).toISOString()

export const newCommand = (n: number, more: Partial<NewCommand> = {}): NewCommand => ({
  id: idOf(n),
  auditId: idOf(1000 + n),
  organizationId: ours,
  agentId: ours,
  personId: ours,
  idempotencyKey: `key-${n}`,
  contentDigest: 'digest',
  characters: 100,
  messageId: `message-${n}`,
  title: `Command ${n}`,
  body: { action: 'send', tenant: '', text: 'Do it.' },
  taskId: null,
  skillId: null,
  status: 'dispatching',
  ...more,
})

/** The organization, its agent, and its first `count` commands. */
export async function placeCommands({ pool }: Database, count: number): Promise<void> {
  await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${ours}, 'ours', 'Ours')`)
  await pool.query(sql.unsafe`
    insert into agent (id, organization_id, card_url, source, name) values (${ours}, ${ours}, 'http://agent.example/', 'managed', 'Agent')`)
  const commands = Array.from({ length: count }, (_, n) => newCommand(n))
  await pool.transaction((tx) => insertCommands(tx, commands, at(0)))
}
