/** Actors as they are seen, for tests of what is said of them. Nothing here is wrong with any of them unless asked for. */
import type { ActorDetail, StateValue } from '../../domain/chart.ts'
import type { Seen } from '../../domain/seen-actor.ts'

export const nowMs = Date.parse('2026-11-21T12:00:00Z')
export const at = (ms: number): string => new Date(nowMs + ms).toISOString()

export const actorIn = (kind: string, value: StateValue, more: Partial<ActorDetail> = {}): ActorDetail => ({
  kind,
  id: '00000000-0000-7000-8000-000000000001',
  value,
  status: 'active',
  revision: 2,
  machineVersion: '1',
  updatedAt: at(0),
  movedAt: at(0),
  attention: false,
  silent: false,
  waits: false,
  title: '',
  createdAt: at(-1000),
  context: {},
  work: null,
  timers: [],
  lease: null,
  next: [],
  agentId: null,
  agentName: null,
  taskId: null,
  ...more,
})
export const seen = (actor: ActorDetail, more: Partial<Omit<Seen, 'actor'>> = {}): Seen => ({
  at: at(0),
  actor,
  wait: null,
  untaken: null,
  since: null,
  holderSeenAt: null,
  delivery: null,
  evidence: null,
  settlement: null,
  ...more,
})
