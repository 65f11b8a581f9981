import { describe, it } from 'vitest'
import { sql } from 'slonik'
import { openDatabase } from '../../persistence/database.ts'
import { freshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { freshSystem, systemOn, type RunningSystem } from '../support/system.ts'
const pass = (ms: number) => new Promise((f) => setTimeout(f, ms))
const obs = (task: string, state: string, t: string, m?: string) => ({ kind: 'task', taskId: task, contextId: 'c', event: '{}', status: { state, timestamp: t }, messages: m ? [{ id: m, role: 'agent', parts: '[]', timestamp: null, fromStatus: false }] : [], artifacts: [], stored: [] }) as never
const stage = (r: RunningSystem, agentId: string) => {
  const rt = r.system.runtime
  const report = (source: string, command: unknown, o: never, remote: string | null) => ({ type: 'agent.reported', report: { agentId, tenant: '', source, command, remoteTaskId: remote, observations: [o] } }) as never
  const lease = async (kind: string, id: string, work: string) => {
    const token = crypto.randomUUID()
    await r.db.pool.query(sql.unsafe`update actor set lease_token = ${token}, lease_owner = 'x', lease_until = now() + interval '1 hour', wake_at = now() + interval '1 hour', work_started_at = now() where kind = ${kind} and id = ${id} and work = ${work}`)
    return { token, work }
  }
  const reply = async (id: string, o: never) => {
    const l1 = await lease('command', id, 'discover')
    await rt.step({ ref: { kind: 'command', id }, event: { type: 'xstate.done.actor.discover', output: { kind: 'found' } } as never, told: [], lease: l1, cause: 'worker' })
    const l2 = await lease('command', id, 'deliver')
    return { ref: { kind: 'command', id }, event: { type: 'xstate.done.actor.deliver', output: { kind: 'replied' } } as never, told: [report('reply', { id, title: null, skillId: null, referenceTaskIds: [], sent: null, reply: '{}' }, o, null)], lease: l2, cause: 'worker' }
  }
  const taskOf = async (remote: string) => ((await r.db.pool.one(sql.unsafe`select id from task where remote_id = ${remote}`)) as { id: string }).id
  return { rt, report, lease, reply, taskOf }
}

describe('runtime', () => {
  it('F6 connection kills every 5 s', async () => {
    const fresh = await freshDatabase('postgresql')
    const other = await openDatabase(fresh.profile)
    const r = await systemOn(fresh.db)
    const peer = await startRawPeer()
    const { id: agentId } = await r.system.agents.register(r.viewer, peer.cardUrl)
    const t0 = Date.now()
    let end = 'alive'
    r.system.supervisor.ended.then(() => (end = 'ended'), (e: Error) => (end = `${Date.now() - t0} ms: ${e.message}`))
    const ids: string[] = []
    let on = true
    const load = (async () => { while (on && end === 'alive') { await r.send(agentId, { text: 'direct' }).then((c) => ids.push(c.id), () => undefined); await pass(5) } })()
    for (let i = 0; i < 7 && end === 'alive'; i++) { await pass(3000)
      await other.pool.query(sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`).catch((e: Error) => console.log(e.message)) }
    on = false
    await load
    await pass(2000)
    const rows = await other.pool.any(sql.unsafe`select status, count(*) from command group by 1`)
    const tally = Map.groupBy(r.lines, (l) => `${l.message} ${l.fields['loop'] ?? l.fields['work'] ?? ''} ${(l.fields['err'] as Error)?.message}`)
    console.log('F6', end, ids.length, JSON.stringify(rows), [...tally].map(([k, v]) => `${v.length}x ${k}`))
    if (end === 'alive') await r.close()
    await other.close(); await fresh.close().catch(() => undefined); await peer.close()
  }, 90_000)
  it('T report hit by one lost connection', async () => {
    const fresh = await freshDatabase('pglite')
    let lose = 0
    const pool = new Proxy(fresh.db.pool, { get(target, key) {
      if (key !== 'transaction') return Reflect.get(target, key)
      return async (f: never) => { if (lose > 0) { lose--; throw Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' }) } return target.transaction(f) }
    } })
    const r = await systemOn({ ...fresh.db, pool } as never)
    const peer = await startRawPeer()
    const { id: agentId } = await r.system.agents.register(r.viewer, peer.cardUrl)
    peer.script.holdReplies()
    const c = await r.send(agentId, { text: 'direct' })
    await peer.received(1)
    lose = 1
    peer.script.release()
    const t = Date.now()
    const f = await Promise.race([r.system.commands.settled(r.viewer, c.id, AbortSignal.timeout(75_000))])
    console.log('T', f.status, f.error, Date.now() - t, r.lines.map((l) => l.message))
    await r.close(); await fresh.close(); await peer.close()
  }, 90_000)
})
