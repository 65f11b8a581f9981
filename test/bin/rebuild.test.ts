/**
 * `db:projections:rebuild` as a process that an operator stops: it ends behind the task that it is at, says so, and the next run goes on
 * there. What a rebuild brings back: test/persistence/rebuild.test.ts.
 */
import { spawn } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from 'slonik'
import { z } from 'zod'
import { listTaskIds } from '../../persistence/rebuild.ts'
import { live } from '../persistence/histories.ts'
import { childArgs } from '../support/child.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { watch, type Running } from './stage.ts'

const Waiting = z.object({ waiting: z.number() })

describe('a rebuild that is stopped', () => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let ids: readonly string[]
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    running = await systemOn(fresh.db, { works: false })
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    for (const id of ['one', 'two', 'three']) {
      const reply = { task: { id, status: { state: 'TASK_STATE_WORKING' } } }
      await live(running, agentId, { id, body: { text: id }, reply, later: [] })
    }
    ids = await listTaskIds(fresh.db.pool, running.viewer.organizationId, null, 10)
  })
  afterAll(async () => {
    await running.close()
    await fresh.close()
  })

  function rebuild(): Running {
    const url = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    const env = { PATH: process.env['PATH'], A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }
    return watch(spawn(process.execPath, childArgs('bin/projections.ts'), { env }))
  }

  /** Somebody holds the task until the returned function is called: the run that comes to it waits there. */
  async function held(taskId: string): Promise<() => Promise<void>> {
    const [locked, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = fresh.db.raw(async (client) => {
      // In one exchange, after which nothing is being read: the index that a run makes for itself waits for readers.
      await client.query(`begin; select from task where id = '${taskId}' for update`)
      locked.resolve()
      await over.promise
      await client.query('rollback')
    })
    await locked.promise
    return () => {
      over.resolve()
      return holding
    }
  }
  const waiting = () =>
    fresh.db.pool.oneFirst(sql.type(Waiting)`
      select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%for update%'`)
  const line = (id: string | undefined): string => `${id} 2 events, unchanged\n`

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s goes on behind its last task, and the run after that begins anew',
    async (signal) => {
      const [one, two = '', three] = ids
      const release = await held(two)
      const stopped = rebuild()
      await stopped.says(line(one))
      await expect.poll(waiting).toBe(1)
      stopped.process.kill(signal)
      await release()
      expect(await stopped.outcome).toEqual({
        code: 1,
        stdout: line(one) + line(two),
        stderr: 'Interrupted; the next run goes on from here.\n',
      })

      const next = await rebuild().outcome
      const [resumed = '', ...lines] = next.stdout.split(/(?<=\n)/)
      expect(resumed).toMatch(new RegExp(`^Going on behind ${two}: 2 tasks done by the run of \\d{4}-\\S+Z\\.\n$`))
      expect(lines).toEqual([line(three), 'Rebuilt 1 task from 2 events; 0 repaired.\n'])
      expect(next).toMatchObject({ code: 0, stderr: '' })

      const anew = await rebuild().outcome
      expect(anew.stdout).toBe(`${ids.map(line).join('')}Rebuilt 3 tasks from 6 events; 0 repaired.\n`)
    },
  )
})
