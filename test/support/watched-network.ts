/**
 * What this process really connects to, as Node itself reports it, and canaries on loopback that say when they were touched.
 * Owns the record. Does not own any expectation, and changes nothing about what connects.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, Socket, type AddressInfo, type Server } from 'node:net'

export interface WatchedNetwork {
  /** `address port` of every TCP connection that was begun since, in order; a name that only resolved is none. */
  readonly attempts: readonly string[]
  close(): void
}

/** From here on, in this process. Connections to the given ports, such as the test's own to the console, are left out. */
export function watchNetwork(except: readonly number[]): WatchedNetwork {
  const attempts: string[] = []
  const seen = (message: unknown): void => {
    const socket = typeof message === 'object' && message !== null && 'socket' in message ? message.socket : null
    if (!(socket instanceof Socket)) throw new Error('Node reports a socket that is none.')
    socket.on('connectionAttempt', (address: string, port: number) => {
      if (!except.includes(port)) attempts.push(`${address} ${port}`)
    })
  }
  subscribe('net.client.socket', seen)
  return { attempts, close: () => void unsubscribe('net.client.socket', seen) }
}

export interface Canaries {
  readonly port: number
  /** Connections that came, on either address. */
  readonly touched: number
  close(): Promise<void>
}

/** Listens on 127.0.0.1 and ::1 at one port. Hangs up on everybody. */
export async function openCanaries(): Promise<Canaries> {
  const all: Server[] = []
  let touched = 0
  const open = async (host: string, port: number): Promise<number> => {
    const server = createServer((socket) => {
      touched += 1
      socket.destroy()
    })
    server.listen(port, host)
    await once(server, 'listening')
    all.push(server)
    return (server.address() as AddressInfo).port
  }
  const port = await open('127.0.0.1', 0)
  await open('::1', port)
  return {
    port,
    get touched() {
      return touched
    },
    async close() {
      await Promise.all(all.map((server) => new Promise((done) => server.close(done))))
    },
  }
}
