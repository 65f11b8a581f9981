/**
 * Agents that say 100 (Continue) before their answer, though nobody asked: a client has to be able to read any number of interim heads
 * before the final one [RFC 9110 §15.2]. undici does so with all but this one, for which it destroys the socket, and has no option for
 * it; so it is shown 102 (Processing), which says as little. One byte of a status line is changed and nothing is held back or taken
 * out: what is a head and what is too many of them is still decided by undici's parser and by call.ts.
 */
import type { Socket } from 'node:net'

const CR = 0x0d
const LF = 0x0a
const zero = 0x30
const two = 0x32
const interimLine = Buffer.from('HTTP/1.1 1')
/** Where the status code has its last digit. */
const lastDigitAt = interimLine.length + 1

/**
 * Follows heads until one is no interim one: all that comes after it is an answer, and never looked at. A head that this reads otherwise
 * than undici is at worst not followed any further.
 */
export class InterimHeads {
  /** How much of a status line was seen; null inside of an interim head's fields. */
  #seen: number | null = 0
  #isContinue = false
  #isLineEmpty = false
  #isOver = false

  /** The answer to another request begins. */
  restart(): void {
    this.#seen = 0
    this.#isOver = false
  }

  /** Changes what has just been received, in place. */
  pass(received: Uint8Array): void {
    for (let at = 0; at < received.length && !this.#isOver; at++) {
      const byte = received[at] ?? 0
      if (this.#seen === null) this.#inFields(byte)
      else if (this.#inStatusLine(byte, this.#seen)) received[at] = two
    }
  }

  /** True where this is the last digit of 100. */
  #inStatusLine(byte: number, seen: number): boolean {
    // Empty lines before a head are passed over, as every parser of HTTP does.
    if (seen === 0 && (byte === CR || byte === LF)) return false
    if (seen < interimLine.length) {
      this.#isOver = byte !== interimLine[seen]
      this.#seen = seen + 1
      return false
    }
    if (seen < lastDigitAt) {
      this.#isContinue = byte === zero
      this.#seen = seen + 1
      return false
    }
    this.#seen = null
    this.#isLineEmpty = false
    return this.#isContinue && byte === zero
  }

  #inFields(byte: number): void {
    if (byte === CR) return
    if (byte !== LF) this.#isLineEmpty = false
    else if (this.#isLineEmpty) this.#seen = 0
    else this.#isLineEmpty = true
  }
}

/** To be called before undici has the socket: a socket pushes each piece once, as it comes. */
export function admitInterim(socket: Socket): Socket {
  const heads = new InterimHeads()
  const push = socket.push.bind(socket)
  let written = 0
  socket.push = (piece: unknown, encoding) => {
    if (piece instanceof Uint8Array) {
      // One request a time is under way on a socket: what comes after another was written is the head of its answer.
      if (socket.bytesWritten > written) heads.restart()
      written = socket.bytesWritten
      heads.pass(piece)
    }
    return push(piece, encoding)
  }
  return socket
}
