/**
 * Death between the bytes of a message: before the first one, after the head, after the body. Watches this process's own
 * sockets for requests that carry a message or a cancel to an agent, and no other: a task is also read by POST, at its own times. Lies
 * below the product, which has no hook for it and needs none.
 */
import { Socket } from 'node:net'
import { Outbound } from '../../../actors/outbound.ts'
import type { Doom } from './doom.ts'

/** Marks the head of a message, where the body does not show yet. Agents ignore it. */
const mark = 'x-storm-message'

export function watchSockets(doom: Doom): void {
  const write: unknown = Reflect.get(Socket.prototype, 'write')
  if (typeof write !== 'function') throw new TypeError('A socket cannot write.')
  const headSent = new WeakSet<Socket>()
  const watched = function (this: Socket, ...given: unknown[]): unknown {
    const [chunk, encoding] = given
    const through = (done?: () => void): unknown =>
      Reflect.apply(write, this, done ? [chunk, typeof encoding === 'string' ? encoding : undefined, done] : given)
    if (typeof chunk === 'string' && chunk.startsWith('POST /') && chunk.includes(mark)) {
      doom.reach('send/before-first-byte')
      headSent.add(this)
      if (!doom.awaits('send/after-head')) return through()
      // undici corks head and body together; the head alone has to be with the kernel when this process dies.
      const passed = through(() => doom.reach('send/after-head'))
      while (this.writableCorked > 0) this.uncork()
      return passed
    }
    if (!headSent.has(this)) return through()
    // What follows a head is its body, of which nothing may leave when the process dies after the head.
    if (doom.awaits('send/after-head')) return true
    headSent.delete(this)
    return doom.awaits('send/after-body') ? through(() => doom.reach('send/after-body')) : through()
  }
  Object.defineProperty(Socket.prototype, 'write', { value: watched, writable: true, configurable: true })
}

/** The product's door to the network, and death between an agent's answer and the first word about it. */
export class DoomedOutbound extends Outbound {
  readonly #doom: Doom

  constructor(doom: Doom, policy: ConstructorParameters<typeof Outbound>[0]) {
    super(policy)
    this.#doom = doom
  }

  override async exchange(...[request, ...rest]: Parameters<Outbound['exchange']>): ReturnType<Outbound['exchange']> {
    if (!isMessage(request)) return super.exchange(request, ...rest)
    const sent = await super.exchange({ ...request, headers: { ...request.headers, [mark]: '1' } }, ...rest)
    if (sent.kind === 'answered') this.#doom.reach('answer/received')
    return sent
  }
}

/**
 * Every version and binding writes a message's own id into the body; nothing that reads a task does. A cancel is told by its
 * method or by its address.
 */
const isMessage = ({ url, body }: Parameters<Outbound['exchange']>[0]): boolean =>
  url.endsWith(':cancel') || (body !== undefined && /"messageId"|"CancelTask"|"tasks\/cancel"/.test(body))
