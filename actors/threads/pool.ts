/**
 * Parsing off the main thread: frames of many streams over a few threads, each stream's results in order. Owns what is
 * parsed where, order, bounds, and what happens when a thread dies. Does not own sockets (outbound.ts) or decoding
 * (stream-parser.ts). Secrets stay here: a thread gets bytes and an endpoint, and no environment.
 */
import { once } from 'node:events'
import { Piscina } from 'piscina'
import type { Endpoint } from '../../a2a/operations.ts'
import { FrameSplitter, FrameTooLarge } from '../../a2a/sse.ts'
import { lostAnswers } from '../../domain/lost-answer.ts'
import { TaskDeadline } from './deadline.ts'
import { HeavyTurns } from './heavy-turns.ts'
import type {
  FramesTask,
  ParsedEvent,
  ParserTask,
  PushTask,
  Reply,
  ReplyOperation,
  ReplyTask,
  ThreadTask,
} from './messages.ts'
import { parseTask } from './stream-parser.ts'

/** One event may be as large as a whole stream: a 16 MiB part is 21.4 MiB of base64 in a single frame. */
const frameLimitBytes = 25 * 1024 * 1024
/** Under this a frame costs less here than its way to a thread and back (notes: about 4 KB); measured again in the tests. */
const smallBytes = 4 * 1024
/** Small frames are cheap one by one; this many bytes of them at once are a stall again (some 2 ms). */
const smallRunBytes = 64 * 1024
/** One task for a thread: small enough that streams take turns, large enough that the way there does not count. */
const batchBytes = 1024 * 1024
const batchFrames = 64
/** A frame that takes longer is hostile: the worst that json-weight.ts lets through take seconds. From when a thread began. */
const defaultTaskDeadlineMs = 60_000
/** Waiting for a thread may take as long as this many that are hostile, one after the other. */
const waitedFor = 10
const defaultCloseDeadlineMs = 2_000
/**
 * Whoever answers people goes first: with as many threads as processors and a database beside them, the event loop would wait for
 * its turn behind an agent's words. On Linux niceness is a thread's own; elsewhere it would be the whole process'.
 */
const niceness = process.platform === 'linux' ? 5 : 0
/** The last resort, several times what json-weight.ts lets through: V8 may abort the process where a thread reaches it. */
const threadMemoryMb = 1024

export interface StreamFormat {
  readonly endpoint: Endpoint
  readonly requestId: string
}

/** What has become whole of a stream and is not read yet. */
export interface WholeFrames {
  /** Of all of them: none, where a chunk only added to a frame that goes on. */
  readonly bytes: number
  /**
   * Reads them, once, after those before them. Rejects with ParserPoolClosed and nothing else of itself; an agent's garbage is an `invalid`
   * event, after which later frames are still read. When a thread died, or none was free, `invalid` stands for all the frames of
   * a batch: read the task again. Who no longer wants it aborts, and it rejects with the signal's reason at once: a thread that was
   * at it is replaced.
   */
  parse(signal?: AbortSignal): Promise<ParsedEvent[]>
}

/**
 * One stream's parser. Have what is whole read before the next chunk is pushed: that is the back-pressure which stops reading from
 * the agent. A frame that is not whole is held here, 25 MiB of it at most; a process holds as many as it follows streams.
 */
export interface StreamParser {
  push(chunk: Uint8Array): WholeFrames
  /** After the agent's end of the stream: what stood behind the last blank line. */
  end(): WholeFrames
}

/** Not the agent's fault and not an outcome: this process is going away. */
export class ParserPoolClosed extends Error {
  override readonly name = 'ParserPoolClosed'
}

export interface ParserStats {
  readonly threads: number
  /** Tasks given to threads and not answered yet. */
  readonly underWay: number
  /** Of these, how many wait for a thread. */
  readonly queued: number
  /** Of all these, the bytes that threads hold or wait for. */
  readonly bytesUnderWay: number
  readonly framesHere: number
  readonly framesInThreads: number
  /** Tasks that were given up because their thread died or took too long, or none was free. */
  readonly tasksLost: number
}

export interface ParserOptions {
  readonly threads: number
  readonly taskDeadlineMs?: number
  /** How long `close` lets work finish that is under way. */
  readonly closeDeadlineMs?: number
  /** Told what each lost task ended with: for the log, to which the console's page points. */
  readonly lost?: (error: unknown) => void
}

export class ParserPool {
  /** For whoever has a text parsed here: from its bytes to the commit of what it says. */
  readonly heavy = new HeavyTurns()
  readonly #threads: number
  readonly #taskDeadlineMs: number
  readonly #closeDeadlineMs: number
  readonly #tellLoss: (error: unknown) => void
  readonly #underWay = new Set<Promise<unknown>>()
  #pool: Piscina<ThreadTask, ParsedEvent[]> | null = null
  #closed = false
  #framesHere = 0
  #framesInThreads = 0
  #bytesUnderWay = 0
  #tasksLost = 0

  constructor(options: ParserOptions) {
    this.#threads = options.threads
    this.#taskDeadlineMs = options.taskDeadlineMs ?? defaultTaskDeadlineMs
    this.#closeDeadlineMs = options.closeDeadlineMs ?? defaultCloseDeadlineMs
    this.#tellLoss = options.lost ?? (() => undefined)
  }

  get stats(): ParserStats {
    return {
      threads: this.#threads,
      underWay: this.#underWay.size,
      queued: this.#pool?.queueSize ?? 0,
      bytesUnderWay: this.#bytesUnderWay,
      framesHere: this.#framesHere,
      framesInThreads: this.#framesInThreads,
      tasksLost: this.#tasksLost,
    }
  }

  openStream(format: StreamFormat): StreamParser {
    return new OrderedParser(format, (task, signal) => this.#parse(task, signal))
  }

  /** Reads a whole answer. A large body is moved to a thread: its bytes are gone for the caller. The signal is that of `WholeFrames.parse`. */
  async parseReply(
    endpoint: Endpoint,
    operation: ReplyOperation,
    reply: Reply,
    requestId: string,
    signal?: AbortSignal,
  ): Promise<ParsedEvent> {
    return this.#parseOne({ kind: 'reply', endpoint, requestId, operation, reply }, signal)
  }

  /** Reads the body of a push. A large body is moved to a thread: its bytes are gone for the caller. */
  parsePush(body: Uint8Array): Promise<ParsedEvent> {
    return this.#parseOne({ kind: 'push', body })
  }

  async #parseOne(task: ReplyTask | PushTask, signal?: AbortSignal): Promise<ParsedEvent> {
    const [event] = await this.#parse(task, signal)
    // It is exactly one event; the type of a batch does not say so.
    return event ?? { kind: 'invalid', message: 'The answer is empty.' }
  }

  /** Lets what is under way finish, for a moment; what does not is cut off and rejects with ParserPoolClosed. */
  async close(): Promise<void> {
    this.#closed = true
    const finished = Promise.allSettled(this.#underWay)
    await Promise.race([finished, once(AbortSignal.timeout(this.#closeDeadlineMs), 'abort')])
    await this.#pool?.destroy()
    await finished
  }

  async #parse(task: ParserTask, signal?: AbortSignal): Promise<ParsedEvent[]> {
    if (this.#closed) throw new ParserPoolClosed('closed')
    signal?.throwIfAborted()
    const pieces = task.kind === 'frames' ? task.frames : [task.kind === 'push' ? task.body : task.reply.body]
    if (placeFor(pieces) === 'here') {
      this.#framesHere += pieces.length
      return parseTask(task)
    }
    this.#framesInThreads += pieces.length
    // Counted now: the buffers move to the thread, and here nothing is left of them.
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
    this.#bytesUnderWay += bytes
    const running = this.#inThread(task, signal)
    this.#underWay.add(running)
    try {
      return await running
    } finally {
      this.#underWay.delete(running)
      this.#bytesUnderWay -= bytes
    }
  }

  async #inThread(task: ParserTask, unwanted?: AbortSignal): Promise<ParsedEvent[]> {
    const [owned, transferList] = withOwnBuffers(task)
    const deadline = new TaskDeadline({ running: this.#taskDeadlineMs, waiting: this.#taskDeadlineMs * waitedFor })
    const { began } = deadline
    const signal = unwanted ? AbortSignal.any([deadline.signal, unwanted]) : deadline.signal
    try {
      return await this.#started().run({ task: owned, began }, { transferList, signal })
    } catch (error) {
      unwanted?.throwIfAborted()
      if (this.#closed) throw new ParserPoolClosed('cut off', { cause: error })
      // The thread's own code answers for every frame; what arrives here is a thread's death: memory, time, a crash. Or nobody began.
      this.#lost(error)
      const message = deadline.hasWaitedInVain ? lostAnswers.unread : 'The event could not be read.'
      return [{ kind: 'invalid', message, lost: String(signal.aborted ? signal.reason : error) }]
    } finally {
      deadline.end()
    }
  }

  /** Threads start with the first large frame: a console whose agents are terse never pays for them. */
  #started(): Piscina<ThreadTask, ParsedEvent[]> {
    if (this.#pool !== null) return this.#pool
    const source = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
    this.#pool = new Piscina<ThreadTask, ParsedEvent[]>({
      filename: new URL(`./stream-parser${source}`, import.meta.url).href,
      name: 'parseInThread',
      // As many as there may ever be: piscina replaces a dead thread only up to the minimum, and queued tasks would wait.
      minThreads: this.#threads,
      maxThreads: this.#threads,
      // Bounded by the callers: a stream has one task at a time, a reply is one.
      maxQueue: Infinity,
      niceIncrement: niceness,
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: threadMemoryMb },
    })
    // An idle thread that dies has no task to reject; piscina has replaced it by then.
    this.#pool.on('error', (error) => this.#lost(error))
    return this.#pool
  }

  #lost(error: unknown): void {
    this.#tasksLost += 1
    this.#tellLoss(error)
  }
}

/** Where a run of frames is parsed: the one place where that is decided. */
export function placeFor(frames: readonly Uint8Array[]): 'here' | 'thread' {
  const bytes = frames.reduce((sum, frame) => sum + frame.length, 0)
  const largest = frames.reduce((most, frame) => Math.max(most, frame.length), 0)
  return largest < smallBytes && bytes < smallRunBytes ? 'here' : 'thread'
}

/** Cuts frames into runs that are parsed one after the other: small ones together, large ones together, each bounded. */
export function runsOf(frames: readonly Uint8Array[]): Uint8Array[][] {
  const runs: Uint8Array[][] = []
  let run: Uint8Array[] = []
  let bytes = 0
  for (const frame of frames) {
    const [first] = run
    const isOther = first !== undefined && first.length < smallBytes !== frame.length < smallBytes
    if (run.length > 0 && (isOther || run.length >= batchFrames || bytes + frame.length > batchBytes)) {
      runs.push(run)
      run = []
      bytes = 0
    }
    run.push(frame)
    bytes += frame.length
  }
  if (run.length > 0) runs.push(run)
  return runs
}

/** Moves need buffers that hold nothing else: a view of a shared slab is copied out of it first. */
function withOwnBuffers(task: ParserTask): [ParserTask, ArrayBuffer[]] {
  if (task.kind === 'frames') {
    const frames = task.frames.map(owned)
    return [{ ...task, frames }, frames.map((frame) => frame.buffer)]
  }
  if (task.kind === 'push') {
    const body = owned(task.body)
    return [{ ...task, body }, [body.buffer]]
  }
  const body = owned(task.reply.body)
  return [{ ...task, reply: { ...task.reply, body } }, [body.buffer]]
}

function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength) return new Uint8Array(buffer)
  return Uint8Array.from(bytes)
}

class OrderedParser implements StreamParser {
  readonly #format: StreamFormat
  readonly #parseTask: (task: FramesTask, signal?: AbortSignal) => Promise<ParsedEvent[]>
  readonly #splitter = new FrameSplitter(frameLimitBytes)
  #turn: Promise<unknown> = Promise.resolve()
  #overflowed = false

  constructor(format: StreamFormat, parse: (task: FramesTask, signal?: AbortSignal) => Promise<ParsedEvent[]>) {
    this.#format = format
    this.#parseTask = parse
  }

  push(chunk: Uint8Array): WholeFrames {
    if (this.#overflowed) return this.#whole([])
    try {
      return this.#whole(this.#splitter.push(chunk))
    } catch (error) {
      if (!(error instanceof FrameTooLarge)) throw error
      this.#overflowed = true
      const message = 'Agent response exceeds the safety limit.'
      return {
        bytes: 0,
        parse: async () => [...(await this.#inTurn([])), { kind: 'invalid', message, oversized: true }],
      }
    }
  }

  end(): WholeFrames {
    return this.#whole(this.#splitter.end())
  }

  #whole(frames: Uint8Array[]): WholeFrames {
    return {
      bytes: frames.reduce((sum, frame) => sum + frame.length, 0),
      parse: (signal) => this.#inTurn(frames, signal),
    }
  }

  #inTurn(frames: Uint8Array[], signal?: AbortSignal): Promise<ParsedEvent[]> {
    const turn = this.#turn.then(() => this.#parseAll(frames, signal))
    // Who called learns of a failure; the next call only waits for its turn.
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #parseAll(frames: Uint8Array[], signal?: AbortSignal): Promise<ParsedEvent[]> {
    const events: ParsedEvent[] = []
    for (const run of runsOf(frames)) {
      const { endpoint, requestId } = this.#format
      events.push(...(await this.#parseTask({ kind: 'frames', endpoint, requestId, frames: run }, signal)))
    }
    return events
  }
}
