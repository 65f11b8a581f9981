/**
 * Waiting on committed state: a bounded window of time, the commits that concern a reader, and what becomes of a command
 * and its task. `/messages`, `/cancel` and `/stream` are readings of `progress`. Does not write an answer.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { Bell } from '../actors/loop/bell.ts'
import { concerns, type Changes } from '../actors/loop/changes.ts'
import { isFinished, type Command } from '../domain/command.ts'
import { Refusal } from '../domain/refusal.ts'
import { readPulse, type TaskPulse } from '../persistence/task-views.ts'
import type { Door } from './door.ts'
import type { Standing } from './standing.ts'

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

/**
 * Resolves once the response has its connection to itself. One that waits behind others of its connection is never told when that is
 * cut: what it held, it would hold for ever. Then this never resolves either, so nothing is taken before it does.
 */
export async function ownConnection(response: ServerResponse): Promise<void> {
  if (response.socket === null && !response.destroyed) await once(response, 'socket')
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
 * Yields at once, then after commits that concern a subject or what the person who asks may see, and every few seconds without
 * one, until the signal aborts. Commits that fall into the consumer's own work are one: nothing is missed, nothing queues up.
 */
async function* commits(
  changes: Changes,
  standing: Standing,
  subject: string,
  signal: AbortSignal,
): AsyncGenerator<undefined> {
  const bell = new Bell()
  const silence = changes.subscribe((change) => {
    if (change.organizationId !== null && change.organizationId !== standing.organizationId) return
    if (standing.hears(change) || concerns(change.subjects, subject)) bell.ring()
  })
  try {
    while (!signal.aborted) {
      yield
      await bell.wait(lookAgainMs, signal)
    }
  } finally {
    silence()
  }
}

export type Progress =
  | { readonly kind: 'command'; readonly command: Command }
  | { readonly kind: 'task'; readonly pulse: TaskPulse }
  /** Somebody looked again and nothing had changed. */
  | { readonly kind: 'quiet' }

/**
 * What becomes of a command, and then of the task it made or continued; of a task alone where there is no command. Ends
 * when the command did not succeed, or with the signal: a task may always move again. Refuses as soon as the person's next
 * request would be refused: signed out, or what they follow is theirs to operate no more.
 */
export async function* progress(
  door: Door,
  standing: Standing,
  of: { readonly commandId: string } | { readonly taskId: string },
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  let taskId = 'taskId' in of ? of.taskId : null
  if ('commandId' in of) {
    for await (const told of commandProgress(door, standing, of.commandId, signal)) {
      yield told
      if (told.kind === 'command') taskId = told.command.result?.localId ?? null
    }
  }
  if (taskId !== null) yield* taskProgress(door, standing, taskId, signal)
}

async function* commandProgress(
  door: Door,
  standing: Standing,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  let seen: Command['status'] | null = null
  for await (const _ of commits(door.system.changes, standing, id, signal)) {
    const command = await door.system.commands.find(await standing.viewer(), id)
    yield command.status === seen ? { kind: 'quiet' } : { kind: 'command', command }
    seen = command.status
    if (isFinished(seen)) return
  }
}

async function* taskProgress(
  door: Door,
  standing: Standing,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<Progress> {
  let seen: number | null = null
  for await (const _ of commits(door.system.changes, standing, id, signal)) {
    const pulse = await readPulse(door.db.pool, await standing.viewer(), id)
    if (!pulse) throw new Refusal('task.unknown')
    if (!pulse.isOperable) throw new Refusal('action.forbidden')
    yield pulse.version === seen ? { kind: 'quiet' } : { kind: 'task', pulse }
    seen = pulse.version
  }
}
