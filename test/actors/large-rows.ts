/** Large sends to one agent as their rows tell of them: how many have begun, how many wait in a process, how many in their rows. */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Database } from '../../persistence/database.ts'
import type { RunningSystem } from '../support/system.ts'

const Rows = z.object({ begun: z.number(), waiting: z.number(), free: z.number() })

export const rowsOf = (db: Database, agentId: string): Promise<z.infer<typeof Rows>> =>
  db.pool.one(sql.type(Rows)`
    select count(work_started_at)::int as begun,
      (count(*) filter (where work_started_at is null and lease_token is not null))::int as waiting,
      (count(*) filter (where lease_token is null))::int as free
    from actor where kind = 'command' and lane = ${agentId} and work = 'deliver'`)

export const sendLarge = ({ send }: RunningSystem, agentId: string, n: number) =>
  Promise.all(Array.from({ length: n }, (_, i) => send(agentId, { text: `direct ${i} ${'x'.repeat(2_000)}` })))
