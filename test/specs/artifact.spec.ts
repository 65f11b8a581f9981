/** Artifacts as a person meets them: every kind of part in one shape, what is too large said in its place, a disk that is full. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { StoredBytes, type TaskView } from '../../domain/task.ts'
import { ArtifactsUnavailable } from '../../persistence/artifacts.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { freshSystem } from '../support/system.ts'

const isDone = (view: TaskView): boolean => view.state === 'TASK_STATE_COMPLETED'

describe('an artifact', () => {
  let house: TestConsole
  let raw: RawPeer
  beforeAll(async () => {
    house = await startConsole({ database: 'postgresql' })
    raw = await startRawPeer()
  })
  afterAll(async () => {
    await house.close()
    await raw.close()
  })

  test.each(['1.0', '0.3'] as const)('holds text, data, bytes and addresses in one shape: A2A %s', async (version) => {
    const peer = await startSdkPeer({ version, binding: 'JSONRPC' })
    const agentId = await house.api.register(peer.cardUrl)
    const { localId } = await house.api.send(agentId, { text: 'files' })
    const view = await house.task(localId, isDone)
    const parts = Object.fromEntries(view.artifacts.map(({ name, parts: [part] }) => [name, part]))
    expect(parts).toMatchObject({
      notes: { kind: 'text', value: 'Some notes.', mediaType: 'text/plain' },
      table: { kind: 'data', value: { rows: [1, 2, 3] }, mediaType: 'application/json' },
      sheet: { kind: 'raw', mediaType: 'text/csv', filename: 'sheet.csv' },
      report: { kind: 'url', value: 'https://files.example/report.pdf', filename: 'report.pdf' },
    })
    const { digest, size } = StoredBytes.parse(parts['sheet']?.value)
    const bytes = Buffer.from(await (await house.api.fetch(`/api/artifacts/${digest}`)).arrayBuffer())
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(digest)
    expect(bytes.length).toBe(size)
    await peer.close()
  })

  test('that is too large says so in the place of its bytes, and the rest of the task goes on', async () => {
    const agentId = await house.api.register(raw.cardUrl)
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    const { taskId } = await house.task(localId, (view) => view.state === 'TASK_STATE_WORKING')
    const remoteId = taskId ?? ''
    const bytes = Buffer.alloc(16 * 1024 * 1024 + 1).toString('base64')
    const film = { raw: bytes, filename: 'film.mp4', mediaType: 'video/mp4' }
    const parts = [{ text: 'Here it is.' }, film, { text: 'Enjoy.' }]
    const artifact = { artifactId: 'film', name: 'film', parts }
    // Streams begin with the task as it is: what is said before somebody listens is not heard.
    await expect.poll(() => raw.callsOf('SubscribeToTask')).toBeGreaterThan(0)
    raw.script.emit(remoteId, { artifactUpdate: { taskId: remoteId, artifact } })
    const shown = await house.task(localId, (view) => view.artifacts.length > 0)
    expect(shown.artifacts[0]?.parts).toMatchObject([
      { kind: 'text', value: 'Here it is.' },
      {
        kind: 'unknown',
        value: 'Artifact exceeds the 16 MB persistence limit.',
        mediaType: 'video/mp4',
        filename: 'film.mp4',
      },
      { kind: 'text', value: 'Enjoy.' },
    ])
    raw.script.finish('Done.')
    const done = await house.task(localId, isDone)
    expect(done.artifacts.map(({ artifactId }) => artifactId)).toContain('film')
  })
})

describe('while the artifact directory fails', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'signalbox-blocked-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('nothing half is kept, and what is told is taken in once it works again', async () => {
    const blocked = join(folder, 'artifacts')
    writeFileSync(blocked, 'a file stands where the directory should be')
    const running = await freshSystem('postgresql', { artifactDirectory: blocked })
    const peer = await startRawPeer()
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
    const { localId = '', taskId } = result ?? {}
    const remoteId = taskId ?? ''
    const bytes = Buffer.from('a,b\n1,2\n')
    const parts = [{ raw: bytes.toString('base64'), filename: 'sheet.csv' }]
    const artifactUpdate = { taskId: remoteId, artifact: { artifactId: 'sheet', parts } }
    await expect.poll(() => peer.callsOf('SubscribeToTask')).toBe(1)
    // The sweep meets the same directory; what counts is that the stream's words could not be taken in. A stream learns of that
    // with its next word, so the agent repeats itself.
    const failures = () => {
      peer.script.emit(remoteId, { artifactUpdate })
      return running.lines.filter(({ message }) => message === 'work failed').map(({ fields }) => fields['err'])
    }
    await expect.poll(failures).toContainEqual(expect.any(ArtifactsUnavailable))
    const before = await running.task(localId, () => true)
    expect(before).toMatchObject({ artifacts: [] })
    rmSync(blocked)
    // The stream is opened anew after its pause, and the agent says it again to whoever listens.
    const taken = async () => {
      peer.script.emit(remoteId, { artifactUpdate })
      return (await running.task(localId, () => true)).artifacts
    }
    await expect.poll(taken, { timeout: 10_000 }).toHaveLength(1)
    peer.script.finish('Done.')
    const view = await running.task(localId, (each) => isDone(each) && each.artifacts.length === 2)
    const { digest } = StoredBytes.parse(
      view.artifacts.find(({ artifactId }) => artifactId === 'sheet')?.parts[0]?.value,
    )
    expect(await buffer((await running.system.artifacts.open(digest))?.bytes ?? Readable.from([]))).toEqual(bytes)
    expect(readdirSync(join(blocked, digest.slice(0, 2)))).toEqual([digest])
    await running.close()
    await peer.close()
  })
})
