/**
 * Server-sent events as bytes and text [WHATWG HTML, 9.2]: splitting a byte stream into frames, reading one frame, writing one. Owns
 * framing only; what the data of an A2A event means is a2a/client.ts. Runs in browsers, workers and servers alike.
 */

/** A frame grew over its limit. The splitter that threw it is finished: its stream cannot be trusted to resynchronise. */
export class FrameTooLarge extends Error {
  constructor(limitBytes: number) {
    super(`An event is larger than ${limitBytes} bytes.`)
    this.name = 'FrameTooLarge'
  }
}

export interface SseEvent {
  readonly event: string
  readonly data: string
  readonly id?: string
  /** Milliseconds. */
  readonly retry?: number
}

const lineFeed = 10
const carriageReturn = 13
/** The first block is enough for ordinary events and kept; the others are given back with their frame, so that an idle stream holds little. */
const firstBlockBytes = 64 * 1024
const blockBytes = 1024 * 1024

/**
 * Cuts a byte stream at blank lines, and looks at nothing else: decoding belongs to whoever reads the frame, perhaps on another thread.
 * Line ends may be LF, CRLF, CR or a mix, and a chunk may end anywhere, also inside a CRLF or a character. Every byte is searched
 * once and copied at most twice; at most `maxFrameBytes` are held. Frames own their memory, so that they can be transferred.
 */
export class FrameSplitter {
  readonly #limit: number
  /** Full but for the last; a buffer that grew would copy what it holds with every step, in 25 MB twice over. */
  #blocks: Uint8Array[] = []
  /** Of the last block. */
  #filled = 0
  #heldBytes = 0
  /** Nothing stands on the current line yet. */
  #lineIsEmpty = true
  /** The last byte was a CR: a LF now belongs to it. */
  #afterReturn = false
  #failed = false

  constructor(maxFrameBytes: number) {
    this.#limit = maxFrameBytes
  }

  /** The frames that this chunk completes, in order, without their blank line. Throws FrameTooLarge. */
  push(chunk: Uint8Array): Uint8Array[] {
    if (this.#failed) throw new FrameTooLarge(this.#limit)
    const frames: Uint8Array[] = []
    const lines = new LineEnds(chunk)
    let frameStart = 0
    let position = 0
    while (position < chunk.length) {
      if (this.#afterReturn && chunk[position] === lineFeed) {
        this.#afterReturn = false
        // The LF of a CRLF that closed a frame belongs to no frame.
        if (frameStart === position && this.#heldBytes === 0) frameStart += 1
        position += 1
        continue
      }
      this.#afterReturn = false
      const lineEnd = lines.from(position)
      if (lineEnd > position) this.#lineIsEmpty = false
      if (lineEnd === chunk.length) break
      this.#afterReturn = chunk[lineEnd] === carriageReturn
      position = lineEnd + 1
      if (this.#lineIsEmpty) {
        if (lineEnd > frameStart || this.#heldBytes > 0) frames.push(this.#take(chunk.subarray(frameStart, lineEnd)))
        frameStart = position
      }
      this.#lineIsEmpty = true
    }
    this.#hold(chunk.subarray(frameStart))
    return frames
  }

  /** What is left when the stream ends: peers close without the last blank line. A frame cut short is the reader's to notice. */
  end(): Uint8Array[] {
    if (this.#failed) return []
    this.#lineIsEmpty = true
    this.#afterReturn = false
    return this.#heldBytes > 0 ? [this.#take(new Uint8Array(0))] : []
  }

  #take(tail: Uint8Array): Uint8Array {
    const bytes = this.#heldBytes + tail.length
    if (bytes > this.#limit) this.#fail()
    const frame = new Uint8Array(bytes)
    let place = 0
    for (const block of this.#blocks) {
      const held = block.subarray(0, this.#heldBytes - place)
      frame.set(held, place)
      place += held.length
    }
    frame.set(tail, place)
    this.#heldBytes = 0
    this.#filled = 0
    this.#blocks.length = Math.min(this.#blocks.length, 1)
    return frame
  }

  #hold(tail: Uint8Array): void {
    if (tail.length === 0) return
    const bytes = this.#heldBytes + tail.length
    if (bytes > this.#limit) this.#fail()
    this.#heldBytes = bytes
    for (let rest = tail; rest.length > 0;) {
      const block = this.#roomy()
      const fitting = rest.subarray(0, block.length - this.#filled)
      block.set(fitting, this.#filled)
      this.#filled += fitting.length
      rest = rest.subarray(fitting.length)
    }
  }

  /** A block that is not full. */
  #roomy(): Uint8Array {
    const last = this.#blocks.at(-1)
    if (last && this.#filled < last.length) return last
    const fresh = new Uint8Array(last ? blockBytes : firstBlockBytes)
    this.#blocks.push(fresh)
    this.#filled = 0
    return fresh
  }

  #fail(): never {
    this.#failed = true
    this.#blocks = []
    this.#filled = 0
    this.#heldBytes = 0
    throw new FrameTooLarge(this.#limit)
  }
}

/** Bytes looked at one by one before a native search is worth its call: 25 MB of blank lines took 4.5 s without, 1 s with. */
const nearBytes = 32

/**
 * The line ends of a chunk, asked for from left to right. A native search for LF and one for CR run ahead and are repeated only when
 * passed, so that each sees every byte once, also where a chunk has only one of the two.
 */
class LineEnds {
  readonly #chunk: Uint8Array
  #feed = -1
  #return = -1

  constructor(chunk: Uint8Array) {
    this.#chunk = chunk
  }

  /** The first LF or CR at or after `position`, or the chunk's length. */
  from(position: number): number {
    const chunk = this.#chunk
    const near = Math.min(position + nearBytes, chunk.length)
    for (let index = position; index < near; index += 1)
      if (chunk[index] === lineFeed || chunk[index] === carriageReturn) return index
    if (this.#feed < near) this.#feed = indexFrom(chunk, lineFeed, near)
    if (this.#return < near) this.#return = indexFrom(chunk, carriageReturn, near)
    return Math.min(this.#feed, this.#return)
  }
}

/** Where `byte` is next, or the chunk's length. */
function indexFrom(chunk: Uint8Array, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from)
  return index === -1 ? chunk.length : index
}

/** Names of events by which some servers keep a line open, where others write comments: nothing of A2A is called so. */
const keepAlives: ReadonlySet<string> = new Set(['ping', 'heartbeat', 'keepalive', 'keep-alive'])

/**
 * Reads one frame. Null when it delivers nothing: comments, keep-alives, a frame without data or with empty data (as A2A and our own
 * streams only ever send JSON, an empty one is a keep-alive). Bytes that are not UTF-8 become U+FFFD.
 */
export function parseFrame(frame: Uint8Array | string): SseEvent | null {
  const decoded = typeof frame === 'string' ? frame : new TextDecoder().decode(frame)
  const text = decoded.startsWith('\uFEFF') ? decoded.slice(1) : decoded
  // Splitting by a string is several times faster than by a pattern, and nearly every peer writes LF.
  const lines = text.includes('\r') ? text.split(/\r\n|\r|\n/) : text.split('\n')
  let event = ''
  const data: string[] = []
  let id: string | undefined
  let retry: number | undefined
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon === 0 || line === '') continue
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'data') data.push(value)
    else if (name === 'event') event = value
    else if (name === 'id' && !value.includes('\0')) id = value
    else if (name === 'retry' && /^\d{1,9}$/.test(value)) retry = Number(value)
  }
  const joined = data.join('\n')
  if (joined === '' || keepAlives.has(event.toLowerCase())) return null
  return {
    event: event || 'message',
    data: joined,
    ...(id === undefined ? {} : { id }),
    ...(retry === undefined ? {} : { retry }),
  }
}

const oneLine = (value: string): string => value.replaceAll(/[\r\n\0]/g, '')

/** One event as text, LF only. A line break in `data` becomes a further data line; in a name or an id it is dropped, not obeyed. */
export function formatEvent(e: { event?: string; data: string; id?: string; retry?: number }): string {
  const head =
    (e.event === undefined ? '' : `event: ${oneLine(e.event)}\n`) +
    (e.id === undefined ? '' : `id: ${oneLine(e.id)}\n`) +
    (e.retry === undefined ? '' : `retry: ${Math.max(0, Math.trunc(e.retry))}\n`)
  const data = /[\r\n]/.test(e.data) ? e.data.split(/\r\n|\r|\n/).join('\ndata: ') : e.data
  return `${head}data: ${data}\n\n`
}
