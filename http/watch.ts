/**
 * Waiting on committed state: a bounded window of time, the commits that concern a reader, and what becomes of a command
 * and its task. `/messages`, `/cancel` and `/stream` are readings of `progress`. Does not write an answer.
 */
import type { FastifyReply } from 'fastify'
import { Bell } from '../actors/bell.ts'
import type { Changes } from '../actors/changes.ts'
import type { Viewer } from '../domain/access.ts'
import { isFinished, type Command } from '../domain/command.ts'
import { readPulse, type TaskPulse } from '../persistence/task-views.ts'
import type { Door } from './door.ts'

/** How long a route waits for a person, milliseconds. */
export const patienceMs = 50_000
/** A signal only shortens a wait: without one, state is read again this often. */
const lookAgainMs = 5_000

export interface Window {
  /** Aborts when the time is over or any of the given signals says so. */
  readonly signal: AbortSignal
  close(): void
}

/** Opens a window of time. Whoever opens it closes it: a timer of 50 s must not outlive a request of 5 ms. */
export function openWindow(ms: number, ...signals: readonly AbortSignal[]): Window {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const timer = setTimeout(abort, ms)
  for (const signal of signals) {
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
  }
  return {
    signal: controller.signal,
    close() {
      clearTimeout(timer)
      for (const signal of signals) signal.removeEventListener('abort', abort)
    },
  }
}

/** Aborts when the client is gone before it was answered. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  // The request's own `close` comes as soon as its body is read; only the response knows when the client left.
  const gone = (): void => controller.abort()
  // A client that left while its send was being accepted has closed already: `close` comes only once.
  if (reply.raw.destroyed) gone()
  else reply.raw.once('close', gone)
  return controller.signal
}

/**
 * Yields at once, then after commits of an organization that concern one of `subjects` (empty: any), and every few
 * seconds without one, until the signal aborts. Commits that fall into the consumer's own work are one: nothing is missed, nothing
 * queues up.
 */
export async function* commits(
  changes: Changes,
  concern: { readonly organizationId: string; readonly subjects: ReadonlySet<string>; readonly quietMs?: number },
  signal: AbortSignal,
): AsyncGenerator<void> {
  const { organizationId, subjects, quietMs = lookAgainMs } = concern
  const bell = new Bell()
  const silence = changes.subscribe((change) => {
    const ours = change.organizationId === null || change.organizationId === organizationId
    const named = subjects.size === 0 || change.subjects.size === 0 || isNamed(change.subjects, subjects)
    if (ours && named) bell.ring()
  })
  try {
    while (!signal.aborted) {
      yield
      await bell.wait(quietMs, signal)
    }
  } finally {
    silence()
  }
}

function isNamed(moved: ReadonlySet<string>, subjects: ReadonlySet<string>): boolean {
  for (const subject of subjects) if (moved.has(subject)) return true
  return false
}

export type Progress =
  | { readonly kind: 'command'; readonly command: Command }
  | { readonly kind: 'task'; readonly pulse: TaskPulse }
  /** Somebody looked again and nothing had changed. */
  | { readonly kind: 'quiet' }

/**
 * What becomes of a command, and then of the task it made or continued; of a task alone where there is no command. Ends
 * when the command did not succeed, or with the signal: a task may always move again.
 */
export async function* progress(
  door: Door,
  viewer: Viewer,
  of: { readonly commandId: string } | { readonly taskId: string },
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  let taskId = 'taskId' in of ? of.taskId : null
  if ('commandId' in of) {
    for await (const told of commandProgress(door, viewer, of.commandId, signal)) {
      yield told
      if (told.kind === 'command') taskId = told.command.result?.localId ?? null
    }
  }
  if (taskId !== null) yield* taskProgress(door, viewer, taskId, signal)
}

async function* commandProgress(door: Door, viewer: Viewer, id: string, signal: AbortSignal): AsyncGenerator<Progress> {
  const concern = { organizationId: viewer.organizationId, subjects: new Set([id]) }
  let seen: Command['status'] | null = null
  for await (const _ of commits(door.system.changes, concern, signal)) {
    const command = await door.system.commands.find(viewer, id)
    yield command.status === seen ? { kind: 'quiet' } : { kind: 'command', command }
    seen = command.status
    if (isFinished(seen)) return
  }
}

async function* taskProgress(door: Door, viewer: Viewer, id: string, signal: AbortSignal): AsyncGenerator<Progress> {
  const { organizationId } = viewer
  let seen: number | null = null
  for await (const _ of commits(door.system.changes, { organizationId, subjects: new Set([id]) }, signal)) {
    const pulse = await readPulse(door.db.pool, organizationId, id)
    if (!pulse) return
    yield pulse.version === seen ? { kind: 'quiet' } : { kind: 'task', pulse }
    seen = pulse.version
  }
}
