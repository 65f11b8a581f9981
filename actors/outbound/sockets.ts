/**
 * The pools of sockets that requests go through, by how long a socket is kept. Owns undici's agents and their settings; one set
 * serves everybody, and every client certificate has a set of its own: a connection is somebody's once it has shown one.
 * Does not own who may be reached (policy.ts) or how one socket is opened (connector.ts).
 */
import { setImmediate } from 'node:timers/promises'
import { Agent } from 'undici'
import { guardedConnector, type ClientCertificate, type ResolveAll } from './connector.ts'
import { permitsAddress, type OutboundPolicy } from './policy.ts'

const connectTimeoutMs = 5_000
const maxHeaderBytes = 16 * 1024
/** A kept socket is dropped well before a peer's own timeout (Node's is 5 s): a request written to a dead one is lost. */
const keptSocketMs = 2_000
/**
 * A warm socket was in use half a second ago: its peer is most unlikely to have closed it meanwhile, and under load it saves
 * more than half of a send's cost (408–713 µs of our CPU fresh, 85–201 µs kept). A lone send gets a fresh one.
 */
const warmSocketMs = 500
/**
 * A bound, not a target: how much runs at once is decided by the loops that call, and they count by agent. An origin may be many
 * agents, so it is more than all of them have under way together (256 deliveries, eight streams, two readers, a search for each card
 * that somebody waits for). Who waited for a socket would do so under their own deadline, for what another agent does not answer: with
 * 64 of them one that hung failed its neighbours' sends.
 */
const socketsPerOrigin = 512

export interface SocketWiring {
  readonly resolve?: ResolveAll
  readonly ca?: readonly string[]
}

export class Sockets {
  readonly fresh: Agent
  readonly warm: Agent
  readonly kept: Agent
  readonly streams: Agent

  /** `certificate`: shown to whoever asks for one. Throws where it cannot be used. */
  constructor(policy: OutboundPolicy, wiring: SocketWiring, certificate?: ClientCertificate) {
    const connect = guardedConnector({
      permits: (address) => permitsAddress(policy, address),
      connectTimeoutMs,
      ...wiring,
      ...(certificate === undefined ? {} : { certificate }),
    })
    // Timeouts of undici are off: they restart with every byte. The deadlines of ../outbound.ts do not.
    const bounds = { connections: socketsPerOrigin, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: maxHeaderBytes }
    const common = { ...bounds, connect, allowH2: false }
    // Pipelining 0 is undici's word for a connection that serves one request.
    this.fresh = new Agent({ ...common, pipelining: 0 })
    this.streams = new Agent({ ...common, pipelining: 0 })
    const keepAlive = { keepAliveTimeout: keptSocketMs, keepAliveMaxTimeout: keptSocketMs }
    const warmth = { keepAliveTimeout: warmSocketMs, keepAliveMaxTimeout: warmSocketMs }
    this.warm = new Agent({ ...common, ...warmth, pipelining: 1 })
    this.kept = new Agent({ ...common, ...keepAlive, pipelining: 1 })
  }

  /**
   * Takes nothing more and closes once what is under way has ended. Not before this turn of the event loop is over: who has
   * just been given these sockets still gets to use them.
   */
  async retire(): Promise<void> {
    await setImmediate()
    await Promise.all(this.#all().map((agent) => agent.close()))
  }

  /** Cuts every connection. */
  async destroy(reason: Error): Promise<void> {
    await Promise.all(this.#all().map((agent) => agent.destroy(reason)))
  }

  #all(): Agent[] {
    return [this.fresh, this.warm, this.kept, this.streams]
  }
}
