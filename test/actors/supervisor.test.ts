/** What the supervisor does about a database that is away: it waits, longer while the same outage lasts, and fails nobody. */
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { Supervisor } from '../../actors/supervisor.ts'
import { instruments } from '../../actors/system.ts'
import { loopNames, type LoopName } from '../../machines/supervisor.ts'
import { DatabaseClosed } from '../../persistence/database.ts'
import { capturedLog } from '../support/system.ts'

it('waits twice as long each time while an outage lasts, and as shortly as ever at the next one', async () => {
  /** Milliseconds that the process's clock has been moved. */
  let passedMs = 0
  const lastedMs = [0, 0, 6_000]
  const over = Promise.withResolvers<void>()
  const command = async (signal: AbortSignal): Promise<void> => {
    const ms = lastedMs.shift()
    if (ms === undefined) {
      over.resolve()
      return void (await once(signal, 'abort'))
    }
    passedMs += ms
    throw new DatabaseClosed()
  }
  const rests = async (signal: AbortSignal): Promise<void> => void (await once(signal, 'abort'))
  const loops = {
    ...(Object.fromEntries(loopNames.map((name) => [name, rests])) as Record<LoopName, typeof rests>),
    command,
  }
  const { log, lines } = capturedLog()
  const nothing = (): Promise<void> => Promise.resolve()
  const time = { ...instruments, monotonic: () => instruments.monotonic() + passedMs }
  const supervisor = new Supervisor({ left: new Set(), loops, prepare: nothing, finish: nothing }, time, log)
  await supervisor.start()
  await over.promise
  expect(lines.map(({ fields }) => fields['pauseMs'])).toEqual([250, 500, 250])
  expect(supervisor.outages.get('command')?.pauseMs).toBe(250)
  expect(supervisor.snapshot.context.restarts).toBe(0)
  await supervisor.stop()
})
