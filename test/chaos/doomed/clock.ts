/**
 * A wall clock that jumps: loaded before everything else (`node --import`), in the main thread and in every other, so that the
 * embedded database's clock jumps with the process's. The file that SIGNALBOX_CHAOS_CLOCK names holds by how many
 * milliseconds. Timers and performance.now() know nothing of it, as with a machine whose clock is set.
 */
import { readFileSync } from 'node:fs'

const RealDate = Date
const file = process.env['SIGNALBOX_CHAOS_CLOCK'] ?? ''
const lookEveryMs = 20
let lookedAt = -Infinity
let shiftMs = 0

function now(): number {
  if (performance.now() - lookedAt > lookEveryMs) {
    lookedAt = performance.now()
    shiftMs = Number(readFileSync(file, 'utf8'))
  }
  return RealDate.now() + shiftMs
}

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget) as Date,
  apply: () => new RealDate(now()).toString(),
  get: (target, name, receiver) => (name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown)),
})
