/** What a caller is told when we fail: an outage is 503 and passes, a defect is 500, and neither says why to a stranger. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'slonik'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { TaskAnswer } from '../../http/answers.ts'
import { instruments } from '../../actors/system.ts'
import { pieceMessages } from '../../domain/long-history.ts'
import { QueuesAnswer, SupervisorAnswer } from '../../domain/queue.ts'
import { loopStanding } from '../../domain/queue-words.ts'
import { openDatabase } from '../../persistence/database.ts'
import { commandIn } from '../support/api.ts'
import { startConsole } from '../support/console.ts'
import { freshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { systemOn } from '../support/system.ts'
import { Wire } from '../support/wire.ts'

const unavailable = { error: { message: 'Identity service unavailable.' } }

/** A console whose way to its PostgreSQL can be cut, and an agent. */
async function overWire(binding: 'JSONRPC' | 'HTTP+JSON' = 'JSONRPC') {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('There is no wire to an embedded database.')
  const wire = new Wire(fresh.profile.url)
  const db = await openDatabase({ kind: 'postgresql', url: await wire.open() })
  const house = await startConsole({ database: db, uiDirectory: null })
  const peer = await startRawPeer({ binding })
  const close = async (): Promise<void> => {
    await house.close()
    await db.close()
    wire.close()
    await peer.close()
    await fresh.close()
  }
  return { wire, house, peer, close }
}

test('the database goes away and comes back: 503 without the cause, then everything goes on, nothing twice', async () => {
  const { wire, house, peer, close } = await overWire()
  const agentId = await house.api.register(peer.cardUrl)
  const messageId = randomUUID()
  const send = () =>
    house.api.post(`/api/agents/${agentId}/commands`, { text: 'hello', messageId }, { 'idempotency-key': messageId })

  wire.cut()
  const lists = ['/api/tasks', '/api/task-views', '/api/agents', '/api/answering-agents', '/api/queues']
  for (const path of [...lists, `/api/commands/${randomUUID()}`]) {
    const reply = await house.api.get(path)
    expect([path, reply.status, reply.body]).toEqual([path, 503, unavailable])
    expect(reply.headers.get('retry-after')).toBe('1')
  }
  const refused = await send()
  expect([refused.status, refused.body]).toEqual([503, unavailable])
  expect(house.log.lines().some((line) => line.includes('a dependency is unavailable'))).toBe(true)
  expect(house.log.errors()).toEqual([])

  // What this process knows of itself needs no database: its loops say what they wait for, each from its next look on.
  const waiting = async () => {
    const { supervisor, process: own } = SupervisorAnswer.parse((await house.api.get('/api/supervisor')).body)
    expect(supervisor.lastFailure).toBeNull()
    return own.loops.filter(({ lastOutage }) => lastOutage !== null).map(({ name }) => name)
  }
  await expect.poll(waiting).toEqual(expect.arrayContaining(['command', 'subscription']))

  wire.mend()
  await expect.poll(async () => (await send()).status, { timeout: 15_000 }).toBe(202)
  const { id } = commandIn(await send())
  expect(await house.finished(id)).toMatchObject({ status: 'succeeded' })
  expect(peer.receiptsOf(messageId)).toBe(1)
  await close()
})

test('an outage longer than all repeats of one row’s trouble uses up none of a command’s looks for its agent', async () => {
  const { wire, house, peer, close } = await overWire()
  const agentId = await house.api.register(peer.cardUrl)
  const cards = peer.callsOf('GetAgentCard')
  peer.script.fault('GetAgentCard', { fault: 'delay', delayMs: 1_000 })
  const { id } = await house.send(agentId, { text: 'direct' })
  await expect.poll(() => peer.callsOf('GetAgentCard')).toBe(cards + 1)
  wire.cut()
  // Six repeats are 7.75 s, from when the card is here on: an outage in which nothing can be asked has no other sign of its length.
  const cutAt = performance.now()
  await expect.poll(() => performance.now() - cutAt, { timeout: 15_000 }).toBeGreaterThan(10_000)
  wire.mend()

  expect(await house.finished(id)).toMatchObject({ status: 'succeeded', error: null })
  const attempts = await house.db.pool.oneFirst(sql.type(z.object({ attempts: z.number() }))`
    select (snapshot->'context'->>'attempts')::int as attempts from actor_archive where id = ${id}`)
  expect([attempts, peer.receipts.length]).toEqual([1, 1])
  expect(house.lines.filter(({ level }) => level === 'error')).toEqual([])
  await close()
})

test('what an agent says once while the database is away is kept: its stream is not begun anew', async () => {
  const { wire, house, peer, close } = await overWire()
  const { result } = await house.finished(
    (await house.send(await house.api.register(peer.cardUrl), { text: 'hold' })).id,
  )
  await peer.script.held(1)
  await expect.poll(() => peer.subscribed()).toHaveLength(1)
  const [remoteId = ''] = peer.taskIds()
  const path = `/api/tasks/${result?.localId}`
  const shown = async () => TaskAnswer.parse((await house.api.get(path)).body).task.artifacts.map(({ parts }) => parts)
  // Nobody can ask this agent for it again: its task does not show it.
  const say = (artifactId: string, text: string): void =>
    peer.script.emit(remoteId, {
      artifactUpdate: { taskId: remoteId, artifact: { artifactId, parts: [{ text }] }, append: true },
    })
  say('draft', 'Said before.')
  await expect.poll(shown).toMatchObject([[{ value: 'Said before.' }]])

  // Nothing of the stream is being committed: what was on its way would be asked after first (lost-acknowledgements.test.ts).
  wire.cut()
  await expect.poll(async () => (await house.api.get(path)).status).toBe(503)
  say('notes', 'Said once.')
  const puts = 'an outage puts off what an agent said'
  await expect.poll(() => house.lines.some(({ message }) => message === puts), { timeout: 10_000 }).toBe(true)
  wire.mend()

  await expect.poll(shown, { timeout: 15_000 }).toMatchObject([[{ value: 'Said before.' }], [{ value: 'Said once.' }]])
  peer.script.finish('Done.')
  const state = async () => TaskAnswer.parse((await house.api.get(path)).body).task.state
  await expect.poll(state).toBe('TASK_STATE_COMPLETED')
  expect((await shown()).slice(1)).toMatchObject([[{ value: 'Said once.' }], [{ value: 'Done.' }]])
  expect(peer.subscribed()).toEqual([remoteId])
  await close()
})

test('an answer whose long history is put off by an outage longer than an agent’s other words may wait is no doubt', async () => {
  const { wire, house, peer, close } = await overWire('HTTP+JSON')
  const agentId = await house.api.register(peer.cardUrl)
  const { result } = await house.finished((await house.send(agentId, { text: 'hold' })).id)
  const taskId = result?.taskId ?? ''
  const history = Array.from({ length: pieceMessages + 1 }, (_, n) => ({
    messageId: `m${n}`,
    role: 'ROLE_AGENT',
    parts: [{ text: 'word' }],
  }))
  const task = { id: taskId, status: { state: 'TASK_STATE_COMPLETED' }, history }
  const headers = { 'content-type': 'application/json' }
  peer.script.fault('SendMessage', { fault: 'body', headers, body: JSON.stringify({ task }) })
  peer.script.holdReplies()
  const { id } = await house.send(agentId, { text: 'green', taskId })
  await peer.received(2)
  wire.cut()
  peer.script.release()
  const puts = 'an outage puts off what an agent said'
  const begunAt = await expect
    .poll(() => house.lines.some(({ message }) => message === puts), { timeout: 10_000 })
    .toBe(true)
    .then(() => performance.now())
  // Ten seconds are what an agent's words wait for that it may be asked for again.
  await expect.poll(() => performance.now() - begunAt, { timeout: 15_000 }).toBeGreaterThan(11_000)
  wire.mend()

  expect(await house.finished(id)).toMatchObject({ status: 'succeeded', error: null })
  await close()
})

test('a commit that fails by a defect ends its stream at once, however silent the agent is', async () => {
  const house = await startConsole({ database: 'postgresql', uiDirectory: null })
  const peer = await startRawPeer()
  await house.finished((await house.send(await house.api.register(peer.cardUrl), { text: 'hold' })).id)
  await peer.script.held(1)
  await expect.poll(() => peer.subscribed()).toHaveLength(1)
  const [remoteId = ''] = peer.taskIds()
  await house.db.raw((client) =>
    client.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise exception 'a defect'; end $$;
      create trigger refuse before insert on task_event execute function refuse()`),
  )
  const artifact = { artifactId: 'notes', parts: [{ text: 'Said once.' }] }
  peer.script.emit(remoteId, { artifactUpdate: { taskId: remoteId, artifact } })
  await expect.poll(() => house.lines.some(({ message }) => message === 'work failed')).toBe(true)
  await house.db.raw((client) => client.query('drop trigger refuse on task_event'))
  await expect.poll(() => peer.subscribed(), { timeout: 10_000 }).toEqual([remoteId, remoteId])
  peer.script.finish('Done.')
  await house.close()
  await peer.close()
})

test('PostgreSQL whose disk is full: a send is refused, an answer under way waits, and with room again nothing is lost', async () => {
  const house = await startConsole({ database: 'postgresql', uiDirectory: null })
  const peer = await startRawPeer()
  const agentId = await house.api.register(peer.cardUrl)
  const send = (messageId: string) =>
    house.api.post(`/api/agents/${agentId}/commands`, { text: 'direct', messageId }, { 'idempotency-key': messageId })
  const [early, late] = [randomUUID(), randomUUID()]
  peer.script.holdReplies()
  const { id } = commandIn(await send(early))
  await peer.received(1)

  // The server's own words for it, from wherever something new would be stored.
  await house.db.raw((client) =>
    client.query(`
      create function no_room() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
      create trigger no_room before insert on fact execute function no_room()`),
  )
  peer.script.release()
  const refused = await send(late)
  expect([refused.status, refused.body]).toEqual([503, unavailable])
  expect(refused.headers.get('retry-after')).toBe('1')
  expect((await house.api.get('/api/agents')).status).toBe(200)
  expect((await house.api.command(id)).status).toBe('dispatching')

  await house.db.raw((client) => client.query('drop trigger no_room on fact'))
  expect(await house.finished(id)).toMatchObject({ status: 'succeeded' })
  const again = await send(late)
  expect(again.status).toBe(202)
  expect(await house.finished(commandIn(again).id)).toMatchObject({ status: 'succeeded' })
  expect([peer.receiptsOf(early), peer.receiptsOf(late)]).toEqual([1, 1])
  expect(house.lines.filter(({ level }) => level === 'error')).toEqual([])
  expect(house.log.errors()).toEqual([])
  await house.close()
  await peer.close()
})

test.each([-3_600_000, 3_600_000])(
  'a worker %i ms off whose directory for files fails says so, now, and nothing of the database',
  async (skewMs) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-blocked-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const blocked = join(folder, 'artifacts')
    writeFileSync(blocked, 'a file stands where the directory should be')
    const house = await startConsole({ database: 'postgresql', uiDirectory: null, system: { works: false } })
    const skewed = { ...instruments, now: () => new Date(instruments.now().getTime() + skewMs) }
    const worker = await systemOn(house.db, { artifactDirectory: blocked, instruments: skewed })
    const housekeeping = async () => {
      const { at, processes } = QueuesAnswer.parse((await house.api.get('/api/queues')).body)
      const { told } = processes.find(({ owner }) => owner === worker.system.worker.owner) ?? {}
      const loop = told?.process.loops.find(({ name }) => name === 'housekeeping')
      return loop && { ...loop, standing: loopStanding(loop, Date.parse(at)).words }
    }
    const standing = 'The files’ directory cannot be read or written'
    await expect
      // Not more often than a person may read.
      .poll(async () => (await housekeeping())?.lastOutage, { timeout: 45_000, interval: 250 })
      .toMatchObject({
        cause: 'artifacts',
      })
    expect(await housekeeping()).toMatchObject({ state: 'up', restarts: 0, standing })
    const said = worker.lines.filter(({ level }) => level !== 'info').map(({ message }) => message)
    expect(new Set(said)).toEqual(new Set(['the artifact directory fails']))
    await worker.close()
    await house.close()
  },
)

test('a defect is 500 with nothing of the cause, which is in the log with its stack', async () => {
  const identify = () => {
    throw new Error('the secret reason')
  }
  const house = await startConsole({ database: 'postgresql', system: { works: false }, identify })
  const reply = await house.api.get('/api/tasks')
  expect(reply.status).toBe(500)
  expect(reply.body).toEqual({ error: { message: 'Something went wrong in the console. It has been logged.' } })
  const [line = ''] = house.log.errors()
  expect(line).toContain('the secret reason')
  expect(line).toContain('outage.spec.ts')
  expect(line).toContain(reply.headers.get('x-request-id'))
  await house.close()
})
