/** What the supervisor does about a database that is away or does not keep up, or a directory that fails: it waits, longer while the same outage lasts, and fails nobody. */
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { Overloaded, Undecided } from '../../actors/loop/operation.ts'
import { Supervisor } from '../../actors/loop/supervisor.ts'
import { instruments } from '../../actors/system.ts'
import { loopNames, type LoopName } from '../../machines/supervisor.ts'
import { ArtifactsUnavailable } from '../../persistence/artifacts.ts'
import { DatabaseClosed } from '../../persistence/database.ts'
import { capturedLog } from '../support/system.ts'

type Loop = (signal: AbortSignal) => Promise<void>
const rests: Loop = async (signal) => void (await once(signal, 'abort'))

const nothing = (): Promise<void> => Promise.resolve()

/** Loops that rest, but for those that are given. */
function supervised(
  given: Partial<Record<LoopName, Loop>>,
  monotonic = () => instruments.monotonic(),
  prepare = nothing,
) {
  const { log, lines } = capturedLog()
  const resting = Object.fromEntries(loopNames.map((name) => [name, rests])) as Record<LoopName, Loop>
  const supervisor = new Supervisor(
    { left: new Set(), loops: { ...resting, ...given }, prepare, finish: nothing },
    { ...instruments, monotonic },
    log,
  )
  return { supervisor, lines }
}

it('waits twice as long each time while an outage lasts, and as shortly as ever at the next one', async () => {
  /** Milliseconds that the process's clock has been moved. */
  let passedMs = 0
  const lastedMs = [0, 0, 6_000]
  const over = Promise.withResolvers<void>()
  const command: Loop = async (signal) => {
    const ms = lastedMs.shift()
    if (ms === undefined) {
      over.resolve()
      return rests(signal)
    }
    passedMs += ms
    throw new DatabaseClosed()
  }
  const { supervisor, lines } = supervised({ command }, () => instruments.monotonic() + passedMs)
  await supervisor.start()
  await over.promise
  expect(lines.map(({ fields }) => fields['pauseMs'])).toEqual([250, 500, 250])
  expect(supervisor.outages.get('command')?.pauseMs).toBe(250)
  expect(supervisor.outages.get('command')?.cause).toBe('database')
  expect(supervisor.snapshot.context.restarts).toBe(0)
  await supervisor.stop()
})

it.each([new Overloaded(), new Undecided()])('waits while the store does not keep up: $message', async (error) => {
  let isFirst = true
  const over = Promise.withResolvers<void>()
  const scopes: Loop = async (signal) => {
    if (!isFirst) {
      over.resolve()
      return rests(signal)
    }
    isFirst = false
    throw error
  }
  const { supervisor, lines } = supervised({ scopes })
  await supervisor.start()
  await over.promise
  expect(lines.map(({ level }) => level)).toEqual(['warn'])
  expect(supervisor.snapshot.context.restarts).toBe(0)
  await supervisor.stop()
})

it('blames the database for nothing that the artifact directory does', async () => {
  const full = new ArtifactsUnavailable(Object.assign(new Error('No space.'), { code: 'ENOSPC' }))
  let isFirst = true
  const over = Promise.withResolvers<void>()
  const housekeeping: Loop = async (signal) => {
    if (!isFirst) {
      over.resolve()
      return rests(signal)
    }
    isFirst = false
    throw full
  }
  const { supervisor, lines } = supervised({ housekeeping })
  await supervisor.start()
  await over.promise
  expect(lines).toEqual([
    {
      level: 'warn',
      message: 'the artifact directory fails',
      fields: { err: full, loop: 'housekeeping', pauseMs: 250, cause: 'artifacts' },
    },
  ])
  expect(supervisor.outages.get('housekeeping')?.cause).toBe('artifacts')
  await supervisor.stop()
})

it('fails to start with what went wrong, so that whoever ends the process can say it', async () => {
  const away = new DatabaseClosed()
  const { supervisor } = supervised({}, undefined, () => Promise.reject(away))
  await expect(supervisor.start()).rejects.toBe(away)
  await expect(supervisor.ended).rejects.toBe(away)
})
