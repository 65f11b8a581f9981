/** Scratch. */
import { startAgent, startConsole, startPeer } from './commands.ts'
import { openStage, query } from './stage.ts'
const stage = await openStage(['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=all'])
const agent = startAgent()
const { fast: cardUrl } = await agent.call('open', null)
const con = startConsole()
const url = await stage.database()
await query(url, 'create extension pg_stat_statements')
await con.call('open', { url, folder: stage.folder('c'), cardUrl })
const peer = startPeer('graphile.ts')
const purl = await stage.database()
await peer.call('open', { url: purl, concurrency: 16 })
const secs = Number(process.argv[2] ?? 3) * 1000
await con.call('flowInside', { forMs: 1500, concurrency: 16, round: 'w' })
await peer.call('flow', { forMs: 1500, concurrency: 16 })
for (let r = 0; r < 2; r++) {
  let d0 = stage.databaseCpuMs(),
    c0 = await peer.cpuMs(),
    t0 = performance.now()
  const g = await peer.call('flow', { forMs: secs, concurrency: 16 })
  const gn = (g.through * (performance.now() - t0)) / 1000
  console.log('graphile', g, 'cpu/job node', ((await peer.cpuMs()) - c0) / gn, 'db', (stage.databaseCpuMs() - d0) / gn)
  await query(url, 'select pg_stat_statements_reset()')
  d0 = stage.databaseCpuMs()
  c0 = await con.cpuMs()
  t0 = performance.now()
  const last = r === 1 && process.argv[3]
  if (last) await con.call('profile', null)
  const s = await con.call('flowInside', { forMs: secs, concurrency: 16, round: `r${r}` })
  const sn = (s.through * (performance.now() - t0)) / 1000
  console.log('signalbox', s, 'cpu/job node', ((await con.cpuMs()) - c0) / sn, 'db', (stage.databaseCpuMs() - d0) / sn)
  if (last) await con.call('endProfile', { folder: '/tmp/prof', name: process.argv[3] ?? 'x' })
  const st = await query(
    url,
    "select calls, round(total_exec_time::numeric,0) as ms, round((total_exec_time/calls)::numeric,2) as mean, left(regexp_replace(query,'\\s+',' ','g'),90) as q from pg_stat_statements order by total_exec_time desc limit 24",
  )
  console.log('commands', sn.toFixed(0))
  for (const x of st)
    console.log(
      (Number(x['calls']) / sn).toFixed(2).padStart(6),
      String(x['ms']).padStart(6),
      String(x['mean']).padStart(6),
      x['q'],
    )
}
console.log(await con.call('outcomes', null))
await con.end()
await peer.end()
await agent.end()
await stage.close()
