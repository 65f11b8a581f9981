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
  it('T2 with control', async () => {
    for (const withPoll of [false, true]) {
      const r = await freshSystem('pglite', { works: false })
      const { id: agentId } = await r.system.agents.register(r.viewer, 'http://127.0.0.1:9/card.json')
      const s = stage(r, agentId)
      await s.rt.step(await s.reply((await r.send(agentId, { text: 'one' })).id, obs('rt-1', 'TASK_STATE_WORKING', '2026-01-01T00:00:01Z')))
      const ref = { kind: 'subscription', id: await s.taskOf('rt-1') }
      const ls = await s.lease('subscription', ref.id, 'follow')
      const rec = (source: string) => ({ ref, event: null, told: [s.report(source, null, obs('rt-1', 'TASK_STATE_INPUT_REQUIRED', '2026-01-01T00:00:02Z'), 'rt-1')], lease: ls, cause: 'worker' })
      await s.rt.step(rec('stream'))
      const answer = await s.reply((await r.send(agentId, { text: 'answer', taskId: 'rt-1' })).id, obs('rt-1', 'TASK_STATE_WORKING', '2026-01-01T00:00:03Z'))
      await Promise.all([s.rt.step(answer), ...(withPoll ? [s.rt.step(rec('poll'))] : [])])
      await s.rt.step({ ref, event: { type: 'xstate.done.actor.follow', output: { kind: 'waiting' } } as never, told: [], lease: ls, cause: 'worker' })
      const log = await r.db.pool.any(sql.unsafe`select revision, event, value from actor_log where kind = 'subscription' order by revision`)
      console.log('T2 poll in the same batch:', withPoll, JSON.stringify(log), JSON.stringify(await r.db.pool.any(sql.unsafe`select state from task`)))
      await r.close()
    }
  }, 60_000)

  it('T11 respawn after archive', async () => {
    const r = await freshSystem('pglite', { works: false })
    const { id: agentId } = await r.system.agents.register(r.viewer, 'http://127.0.0.1:9/card.json')
    const s = stage(r, agentId)
    await s.rt.step(await s.reply((await r.send(agentId, { text: 'one' })).id, obs('rt-1', 'TASK_STATE_WORKING', '2026-01-01T00:00:10.500Z')))
    const ref = { kind: 'subscription', id: await s.taskOf('rt-1') }
    const ls = await s.lease('subscription', ref.id, 'follow')
    // the agent's last word, its clock truncated to seconds; then what subscription.ts answers: finished
    await s.rt.step({ ref, event: null, told: [s.report('poll', null, obs('rt-1', 'TASK_STATE_COMPLETED', '2026-01-01T00:00:10Z'), 'rt-1')], lease: ls, cause: 'worker' })
    await s.rt.step({ ref, event: { type: 'xstate.done.actor.follow', output: { kind: 'finished' } } as never, told: [], lease: ls, cause: 'worker' })
    console.log('T11 task', JSON.stringify(await r.db.pool.any(sql.unsafe`select state from task`)), 'live subs', JSON.stringify(await r.db.pool.any(sql.unsafe`select count(*) from actor where kind='subscription'`)))
    const c = await r.send(agentId, { text: 'so?', taskId: 'rt-1' })
    const answer = await s.reply(c.id, obs('rt-1', 'TASK_STATE_WORKING', '2026-01-01T00:00:11Z'))
    console.log('T11 report:', await s.rt.step(answer).then(() => 'ok', (e: Error) => `${e.name} ${e.message}`), (await r.system.commands.find(r.viewer, c.id)).status)
    await r.close()
  }, 60_000)

  it('T5 deadlocks between two processes', async () => {
    const fresh = await freshDatabase('postgresql')
    const other = await openDatabase(fresh.profile)
    const one = await systemOn(fresh.db, { works: false })
    const two = await systemOn(other, { works: false })
    const { id: agentId } = await one.system.agents.register(one.viewer, 'http://127.0.0.1:9/card.json')
    const a = stage(one, agentId)
    const b = stage(two, agentId)
    const N = 30
    const subs: { ref: { kind: string; id: string }; lease: { token: string; work: string }; remote: string }[] = []
    const answers: Awaited<ReturnType<typeof a.reply>>[] = []
    for (let i = 0; i < N; i++) {
      await a.rt.step(await a.reply((await one.send(agentId, { text: 'one' })).id, obs(`t${i}`, 'TASK_STATE_WORKING', '2026-01-01T00:00:01Z')))
      const id = await a.taskOf(`t${i}`)
      subs.push({ ref: { kind: 'subscription', id }, lease: await a.lease('subscription', id, 'follow'), remote: `t${i}` })
      answers.push(await a.reply((await one.send(agentId, { text: 'more', taskId: `t${i}` })).id, obs(`t${i}`, 'TASK_STATE_WORKING', '2026-01-01T00:00:03Z')))
    }
    const deadlocks = async () => ((await fresh.db.pool.one(sql.unsafe`select deadlocks from pg_stat_database where datname = current_database()`)) as { deadlocks: number }).deadlocks
    const before = await deadlocks()
    const slow: number[] = []
    const timed = async (p: Promise<unknown>) => { const t = performance.now(); await p; slow.push(Math.round(performance.now() - t)) }
    let k = 0
    let answering = true
    await Promise.all([
      (async () => { for (const x of answers) await timed(a.rt.step(x)); answering = false })(),
      ...subs.map(async (s) => { for (let j = 0; j < 400 && answering; j++) await timed(b.rt.step({ ref: s.ref, event: null, told: [b.report('stream', null, obs(s.remote, 'TASK_STATE_WORKING', '2026-01-01T00:00:02Z', `m${k++}`), s.remote)], lease: s.lease, cause: 'worker' })) }),
    ])
    await pass(1500)
    slow.sort((x, y) => y - x)
    console.log('T5 deadlocks', (await deadlocks()) - before, 'slowest ms', slow.slice(0, 8).join(), 'over 900ms:', slow.filter((x) => x > 900).length, 'median', slow[slow.length >> 1], 'n', slow.length)
    await one.close(); await two.close(); await other.close(); await fresh.close()
  }, 90_000)

  it('H lone surrogate state; G replay after removal', async () => {
    const r = await freshSystem('pglite')
    const peer = await startRawPeer({ binding: 'HTTP+JSON' })
    const { id: agentId } = await r.system.agents.register(r.viewer, peer.cardUrl)
    peer.script.fault('SendMessage', { fault: 'body', body: '{"task":{"id":"x","contextId":"c","status":{"state":"\\ud800"}}}', headers: { 'content-type': 'application/json' } })
    const c = await r.send(agentId, { text: 'hello' })
    await pass(1500)
    console.log('H', (await r.system.commands.find(r.viewer, c.id)).status, r.lines.map((l) => [l.message, String((l.fields['err'] as Error)?.message), JSON.stringify(l.fields['err'])?.slice(0, 500)]))
    peer.script.heal()
    const d = await r.send(agentId, { text: 'hello' }, 'k0')
    const done = await r.finished(d.id)
    const remote = done.result?.taskId ?? ''
    const e = await r.send(agentId, { text: 'again', taskId: remote }, 'k1').catch((x: Error) => x.message)
    await r.system.agents.remove(r.viewer, agentId)
    console.log('G', typeof e === 'string' ? e : e.status, await r.send(agentId, { text: 'again', taskId: remote }, 'k1').then((x) => x.status, (x: Error) => x.message), await r.send(agentId, { text: 'hello' }, 'k0').then((x) => x.status, (x: Error) => x.message))
    r.close().catch(() => undefined); await pass(500); await peer.close()
  }, 90_000)

  it('C drain with an agent whose card hangs', async () => {
    const r = await freshSystem('pglite')
    const peer = await startRawPeer()
    peer.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
    const { id: agentId } = await r.system.agents.register(r.viewer, peer.cardUrl)
    await r.send(agentId, { text: 'hello' })
    await pass(500)
    const t = Date.now()
    await r.system.stop()
    console.log('C drain took ms', Date.now() - t)
    await peer.close(); await r.db.close()
  }, 90_000)

  it('D claim in flight while the drain ends', async () => {
    const fresh = await freshDatabase('postgresql')
    const other = await openDatabase(fresh.profile)
    const clerk = await systemOn(fresh.db, { works: false })
    const peer = await startRawPeer()
    const worker = await systemOn(other)
    const { id: agentId } = await clerk.system.agents.register(clerk.viewer, peer.cardUrl)
    let stopped: Promise<void> = Promise.resolve()
    const c = await clerk.send(agentId, { text: 'direct' }).catch(() => null)
    if (c) await clerk.finished(c.id)
    await worker.system.agents.list(worker.viewer)
    let id = ''
    await fresh.db.pool.transaction(async (tx) => {
      await tx.query(sql.unsafe`lock table actor in access exclusive mode`)
      await pass(400) // the command loop's claim now waits
      await tx.query(sql.unsafe`select 1`)
      const made = await tx.one(sql.unsafe`select gen_random_uuid() as id`) as { id: string }
      id = made.id
      await tx.query(sql.unsafe`insert into command select ${id}, organization_id, agent_id, person_id, 'kk', content_digest, action, tenant, 'mm', null, body, 'pending', null, null, null, now(), now() from command limit 1`)
      await tx.query(sql.unsafe`insert into actor (kind,id,organization_id,machine_version,revision,snapshot,work,timers,wake_at,created_at,updated_at) select 'command', ${id}, organization_id, '1', 1, '{"value":{"pending":"discovering"},"context":{"attempts":1,"error":null},"status":"active"}'::jsonb, 'discover', '{}'::jsonb, '2020-01-01', now(), now() from command limit 1`)
      stopped = worker.system.stop()
      await Promise.race([stopped, pass(1500)])
    })
    await stopped
    await pass(1500)
    console.log('D', JSON.stringify(await fresh.db.pool.any(sql.unsafe`select snapshot->'value' as v, work, work_started_at, lease_owner, lease_until - now() as left from actor where id = ${id}`)), (await clerk.system.commands.find(clerk.viewer, id)).status, 'receipts', peer.receiptsOf('mm'), worker.lines.map((l) => l.message))
    await clerk.close(); await other.close(); await fresh.close(); await peer.close()
  }, 90_000)
})
