/** Scratch: parts of an idle command. */
import { Pool } from 'undici'
import { startAgent, startConsole } from './commands.ts'
import { openStage } from './stage.ts'
import { percentile, sharedClock } from './figures.ts'
const stage = await openStage()
const agent = startAgent()
const { fast: cardUrl } = await agent.call('open', null)
const con = startConsole()
const to = await con.call('open', { url: await stage.database(), folder: stage.folder('a'), cardUrl })
const http = new Pool(to.origin, { connections: 2 })
const acc: number[] = [],
  fb: number[] = [],
  sess: number[] = []
for (let i = 0; i < 250; i++) {
  const s0 = sharedClock()
  await (await http.request({ method: 'GET', path: '/api/auth/session' })).body.dump()
  sess.push(sharedClock() - s0)
  const t = sharedClock()
  const r = await http.request({
    method: 'POST',
    path: `/api/agents/${to.agentId}/commands`,
    headers: { 'content-type': 'application/json', 'idempotency-key': `k${i}` },
    body: JSON.stringify({ text: 'x', messageId: `m${i}` }),
  })
  await r.body.dump()
  const a = sharedClock() - t
  while ((await con.call('unfinished', null)) > 0);
  const rec = await agent.call('receipts', null)
  if (i > 50) {
    acc.push(a)
    fb.push((rec[0]?.[1] ?? NaN) - t)
  }
}
for (const [n, x] of Object.entries({ session: sess, accepted: acc, firstByte: fb }))
  console.log(n, percentile(x, 0.25).toFixed(2), percentile(x, 0.5).toFixed(2), percentile(x, 0.9).toFixed(2))
await http.close()
await con.end()
await agent.end()
await stage.close()
