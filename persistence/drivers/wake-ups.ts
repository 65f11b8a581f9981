/**
 * Wake-ups inside this process: who hears which channel, and at most one per window. It knows nothing of databases;
 * postgres.ts carries the same channels between processes.
 */
import { WAKE_UP_WINDOW_MS, type Heard } from './backend.ts'

export class WakeUps {
  readonly #heard = new Map<string, Set<Heard>>()
  readonly #due = new Map<string, Promise<void>>()
  readonly #lastAt = new Map<string, number>()
  readonly #send: (channel: string) => Promise<void>

  /** `send` carries a wake-up beyond this process. */
  constructor(send: (channel: string) => Promise<void>) {
    this.#send = send
  }

  add(channel: string, heard: Heard): () => void {
    // A fresh closure each time: the same function may listen twice and stop once.
    const entry: Heard = (from) => heard(from)
    const entries = this.#heard.get(channel) ?? new Set()
    this.#heard.set(channel, entries.add(entry))
    return () => {
      entries.delete(entry)
      if (entries.size === 0 && this.#heard.get(channel) === entries) this.#heard.delete(channel)
    }
  }

  has(channel: string): boolean {
    return this.#heard.has(channel)
  }

  channels(): string[] {
    return [...this.#heard.keys()]
  }

  ring(channel: string, from: Parameters<Heard>[0]): void {
    for (const heard of this.#heard.get(channel) ?? []) heard(from)
  }

  /** The first of a burst goes at once, the rest of its window together at the window's end. */
  notify(channel: string): Promise<void> {
    const waiting = this.#due.get(channel)
    if (waiting) return waiting
    const waitMs = (this.#lastAt.get(channel) ?? -Infinity) + WAKE_UP_WINDOW_MS - performance.now()
    if (waitMs <= 0) return this.#go(channel)
    const later = new Promise<void>((resolve) => setTimeout(resolve, waitMs)).then(() => {
      this.#due.delete(channel)
      return this.#go(channel)
    })
    this.#due.set(channel, later)
    return later
  }

  async #go(channel: string): Promise<void> {
    this.#lastAt.set(channel, performance.now())
    this.ring(channel, 'here')
    await this.#send(channel)
  }
}
