/** Scratch: A/B of console trees, alternating. args: seconds rounds [trees...] */
import { startAgent } from './commands.ts'
import { startChild, type Child } from './child.ts'
import type { ConsoleMethods } from './console.ts'
import { openStage, query } from './stage.ts'
import { startPeer } from './commands.ts'
const [secs, rounds, ...trees] = process.argv.slice(2)
const stage = await openStage(['shared_preload_libraries=pg_stat_statements'])
const agent = startAgent()
const { fast: cardUrl } = await agent.call('open', null)
const subs: { name: string; child: Child<ConsoleMethods>; url: string; r: number[][] }[] = []
for (const spec of trees) {
  const [tree = '', flag = ''] = spec.split('?')
  process.env['NODE_OPTIONS'] = flag
  const child = startChild<ConsoleMethods>(new URL(`file://${tree}/test/bench/console.ts`))
  const url = await stage.database()
  await query(url, 'create extension pg_stat_statements')
  await child.call('open', { url, folder: stage.folder(spec.replaceAll('/', '_')), cardUrl })
  subs.push({ name: spec, child, url, r: [] })
}
process.env['NODE_OPTIONS'] = ''
const peer = startPeer('graphile.ts')
await peer.call('open', { url: await stage.database(), concurrency: 16 })
const pr: number[][] = []
const ms = Number(secs) * 1000
for (let n = -1; n < Number(rounds); n++) {
  const d0 = stage.databaseCpuMs(),
    c0 = await peer.cpuMs(),
    t0 = performance.now()
  const g = await peer.call('flow', { forMs: ms, concurrency: 16 })
  const gn = (g.through * (performance.now() - t0)) / 1000
  if (n >= 0) pr.push([g.through, ((await peer.cpuMs()) - c0) / gn, (stage.databaseCpuMs() - d0) / gn])
  for (const s of subs) {
    await query(s.url, 'select pg_stat_statements_reset()')
    const d0 = stage.databaseCpuMs(),
      c0 = await s.child.cpuMs(),
      t0 = performance.now()
    const last = n === Number(rounds) - 1 && s === subs.at(-1)
    if (last) await s.child.call('profile', null)
    const f = await s.child.call('flowInside', { forMs: ms, concurrency: 16, round: `r${n}` })
    if (last) await s.child.call('endProfile', { folder: '/tmp/prof', name: 'ab' })
    const count = (f.through * (performance.now() - t0)) / 1000
    const [q] = await query(
      s.url,
      "select sum(calls) filter (where query not like 'SELECT 1 FROM ONLY%') as calls from pg_stat_statements",
    )
    if (n >= 0)
      s.r.push([
        f.through,
        ((await s.child.cpuMs()) - c0) / count,
        (stage.databaseCpuMs() - d0) / count,
        Number(q?.['calls']) / count,
      ])
  }
}
const show = (r: number[][]) => r.map((x) => x.map((y) => y.toFixed(2)).join(' / ')).join('   ')
console.log('through / node cpu / db cpu / statements per command')
console.log('graphile', show(pr))
for (const s of subs) console.log(s.name, show(s.r), JSON.stringify(await s.child.call('outcomes', null)))
for (const s of subs) await s.child.end()
await peer.end()
await agent.end()
await stage.close()
