/** A wire between a console and its PostgreSQL, for outages: owns the sockets through it, not what is at its ends. */
import { once } from 'node:events'
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** A wire to a database that can be cut and mended. */
export class Wire {
  readonly #target: URL
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isCut = false

  constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((near) => {
      if (this.#isCut) return void near.destroy()
      const far = createConnection(Number(this.#target.port), this.#target.hostname)
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from)
        from.pipe(to)
        // Both ends learn of a cut by their own errors; there is nobody else to tell.
        from.on('error', () => to.destroy())
        from.on('close', () => (this.#sockets.delete(from), to.destroy()))
      }
    })
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const url = new URL(this.#target)
    url.hostname = '127.0.0.1'
    url.port = String((this.#server.address() as AddressInfo).port)
    return url.href
  }

  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#isCut = false
  }

  close(): void {
    this.cut()
    this.#server.close()
  }
}
