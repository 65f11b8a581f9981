/**
 * What a demo agent sees of one turn: the message, and the few things it can say. Owns these words. Does not own tasks,
 * storage or the protocol (tasks.ts, serve.ts), so that an agent's file reads as its plot.
 */
import type { Artifact, Message, Part } from '../../a2a/messages.ts'

export type Question = 'INPUT_REQUIRED' | 'AUTH_REQUIRED'
export type Settled = 'COMPLETED' | 'FAILED' | 'REJECTED' | Question

export interface Turn {
  readonly message: Message
  readonly taskId: string
  /** Which kind of question of this agent the message answers; null when it starts a task. */
  readonly answers: Question | null
  /** Extension URIs the client opted into, by header or in the message. */
  readonly extensions: ReadonlySet<string>
  /** The task is being worked on; says so with a sentence where there is one. */
  working(text?: string): void
  /** Ends the turn. Nothing may be said after it. */
  settle(state: Settled, parts?: readonly Part[], extensions?: readonly string[]): void
  artifact(artifact: Artifact, chunk?: { readonly append: boolean; readonly last: boolean }): void
  /** Waits; throws when the task was cancelled meanwhile or the agent closes. */
  pause(ms: number): Promise<void>
  newId(): string
}

export interface DemoAgent {
  readonly name: string
  readonly description: string
  readonly skills: readonly Skill[]
  readonly extensions: readonly Extension[]
  readonly outputModes: readonly string[]
  /** Plays one turn, which must settle. */
  play(turn: Turn): Promise<void> | void
}

export interface Skill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  readonly examples: readonly string[]
}

export interface Extension {
  readonly uri: string
  readonly description: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** Milliseconds between two chunks of a streamed answer, and between two steps of slow work. */
export interface Pace {
  readonly chunkMs: number
  readonly stepMs: number
}

/** The words of a message, its text parts joined. */
export const wordsOf = (message: Message): string =>
  message.parts
    .map((part) => part.text ?? '')
    .join(' ')
    .trim()

/** The first object among a message's data parts. */
export function dataOf(message: Message): Record<string, unknown> | undefined {
  for (const { data } of message.parts)
    if (typeof data === 'object' && data !== null && !Array.isArray(data)) return { ...data }
  return undefined
}
