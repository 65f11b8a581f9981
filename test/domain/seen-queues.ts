/** Queues, leases and loops as they are told, for tests of what is said of them. Nothing here is wrong with any of them unless asked for. */
import type { HeldLeases, KindQueue, LoopView } from '../../domain/queue.ts'

export const nowMs = Date.parse('2026-11-21T12:00:00Z')
export const ago = (ms: number): string => new Date(nowMs - ms).toISOString()

export const queue = (dueMs: number | null): KindQueue => ({
  kind: 'command',
  due: dueMs === null ? 0 : 3,
  oldestDueAt: dueMs === null ? null : ago(dueMs),
  attention: 0,
  busiest: null,
  unseen: 0,
})
export const held = (more: Partial<HeldLeases> = {}): HeldLeases => ({
  owner: 'host/1/ab',
  kind: 'command',
  held: 2,
  expired: 0,
  oldestSince: ago(1000),
  nextEndAt: ago(-10_000),
  ...more,
})
export const places = (taken: number) => ({ taken, limit: 8, perAgent: 4 })
export const loop = (more: Partial<LoopView> = {}): LoopView => ({
  name: 'command',
  state: 'up',
  restarts: 0,
  lastFailure: null,
  lastOutage: null,
  places: places(0),
  ...more,
})
