/**
 * A pooler in transaction mode, as far as a client can be hurt by one: few server connections for many clients, and each
 * transaction on the one that has rested longest, so that whatever a session was told is with somebody else by the next.
 * It refuses settings at the start of a connection, and lets notifications go to whoever happens to be linked; prepared statements
 * it carries as PgBouncer does since 1.21 (pooler-names.ts), or not at all, as before. Speaks PostgreSQL's protocol 3.0 without
 * TLS or passwords.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { message, type Message } from './pooler-message.ts'
import { CarriedNames, type Carried } from './pooler-names.ts'

const protocol3 = 196_608
/** What PgBouncer accepts without being told to ignore it [pgbouncer.org/config.html, ignore_startup_parameters]. */
const startupParameters = new Set([
  'user',
  'database',
  'application_name',
  'client_encoding',
  'datestyle',
  'timezone',
  'standard_conforming_strings',
])
/** What it keeps for a client on whichever server that has, of what it said at the start, as PgBouncer does. */
const keptParameters = ['datestyle', 'timezone', 'standard_conforming_strings'] as const
const serverParameters = { server_version: '18.0', client_encoding: 'UTF8', standard_conforming_strings: 'on' }

export interface Pooler {
  /** The given server's URL, by way of the pooler. */
  readonly url: string
  /** Transactions so far, and how many of them met another server than the same client's last. */
  readonly seen: { transactions: number; moved: number; refusedStarts: number }
  close(): Promise<void>
}

/** Cuts a stream of bytes into messages: a type, a length that counts itself, a body. */
class Messages {
  #rest: Buffer = Buffer.alloc(0)

  push(chunk: Buffer): Message[] {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const whole: Message[] = []
    while (this.#rest.length >= 5) {
      const length = 1 + this.#rest.readInt32BE(1)
      if (this.#rest.length < length) break
      whole.push({ type: String.fromCharCode(this.#rest[0] ?? 0), bytes: this.#rest.subarray(0, length) })
      this.#rest = this.#rest.subarray(length)
    }
    return whole
  }
}

function startup(parameters: Readonly<Record<string, string>>): Buffer {
  const words = Object.entries(parameters).flat().concat('')
  return message(' ', protocol3, ...words).subarray(1)
}

/** `S` and `Q` ask for one ReadyForQuery each: until all have come, a client keeps its server. */
const asksForReady = (type: string): boolean => type === 'S' || type === 'Q'

class Server {
  client: Client | null = null
  /** ReadyForQuery that are still to come. */
  owed = 0
  readonly #socket: Socket
  readonly #messages = new Messages()
  readonly #names: CarriedNames | null
  readonly #told = new Map<string, string>()
  /** Answers to what the pooler itself asked, which are nobody's. */
  #hushed = 0
  #rests: (server: Server) => void = () => undefined

  private constructor(socket: Socket, names: CarriedNames | null) {
    this.#socket = socket
    this.#names = names
  }

  static async open(
    target: URL,
    parameters: Readonly<Record<string, string>>,
    names: CarriedNames | null,
  ): Promise<Server> {
    const socket = connect(Number(target.port), target.hostname)
    socket.setNoDelay()
    await once(socket, 'connect')
    const server = new Server(socket, names)
    const ready = new Promise<void>((resolve) => (server.#rests = () => resolve()))
    socket.on('data', (chunk: Buffer) => server.#hear(chunk))
    socket.on('error', () => socket.destroy())
    socket.write(startup(parameters))
    await ready
    return server
  }

  onRest(rests: (server: Server) => void): void {
    this.#rests = rests
  }

  #hear(chunk: Buffer): void {
    for (const message_ of this.#messages.push(chunk)) {
      const { type, bytes } = message_
      if (this.#hushed > 0) {
        if (type === 'Z') this.#hushed -= 1
        continue
      }
      if (this.#names?.isForClient(message_) !== false) this.client?.socket.write(bytes)
      if (type !== 'Z') continue
      this.owed = Math.max(0, this.owed - 1)
      if (this.owed === 0) this.#names?.rest()
      if (this.owed === 0 && String.fromCharCode(bytes[5] ?? 0) === 'I') this.#rests(this)
    }
  }

  /** Before anything of a client's is sent: what it said when its connection began holds here as well. */
  adapt({ parameters }: Client): void {
    const wanted = keptParameters.map((name) => [name, parameters[name] ?? ''] as const)
    const changed = wanted.filter(([name, value]) => (this.#told.get(name) ?? '') !== value)
    if (changed.length === 0) return
    for (const [name, value] of changed) this.#told.set(name, value)
    const sets = changed.map(([name, value]) => `set ${name} to ${value === '' ? 'default' : `'${value}'`}`)
    this.#hushed += 1
    this.#socket.write(message('Q', sets.join(';')))
  }

  send(client: Client, message_: Message): void {
    if (asksForReady(message_.type)) this.owed += 1
    const messages = this.#names?.forServer(client.carried, message_) ?? [message_]
    for (const { bytes } of messages) this.#socket.write(bytes)
  }

  destroy(): void {
    this.#socket.destroy()
  }
}

class Client {
  readonly socket: Socket
  readonly waiting: Message[] = []
  readonly carried: Carried = new Map()
  /** Of its start. */
  parameters: Readonly<Record<string, string>> = {}
  server: Server | null = null
  last: Server | null = null

  constructor(socket: Socket) {
    this.socket = socket
  }
}

class Pool {
  readonly #resting: Server[] = []
  readonly #all = new Set<Server>()
  readonly #queue: Client[] = []
  readonly #open: () => Promise<Server>
  readonly #seen: Pooler['seen']
  #closed = false

  constructor(open: () => Promise<Server>, seen: Pooler['seen']) {
    this.#open = open
    this.#seen = seen
  }

  async grow(): Promise<void> {
    const server = await this.#open()
    if (this.#closed) return server.destroy()
    this.#all.add(server)
    server.onRest((each) => this.#rest(each))
    this.#rest(server)
  }

  /** A message of a client: to its server, or into its queue until it has one. */
  pass(client: Client, message_: Message): void {
    if (message_.type === 'X') return void client.socket.end()
    if (client.server) return client.server.send(client, message_)
    client.waiting.push(message_)
    if (!this.#queue.includes(client)) this.#queue.push(client)
    this.#link()
  }

  /** A client that is gone in a transaction takes its server along, which is fit for nobody else; another one takes its place. */
  leave(client: Client): void {
    const at = this.#queue.indexOf(client)
    if (at >= 0) this.#queue.splice(at, 1)
    if (!client.server) return
    this.#all.delete(client.server)
    client.server.destroy()
    // Without a server behind it the next transaction waits, and its own time limit tells the test.
    if (!this.#closed) this.grow().catch(() => undefined)
  }

  #link(): void {
    while (this.#queue.length > 0 && this.#resting.length > 0) {
      const client = this.#queue.shift()
      // The one that rested longest is another one than this client had, wherever there are two.
      const server = this.#resting.shift()
      if (!client || !server) return
      this.#seen.transactions += 1
      if (client.last !== null && client.last !== server) this.#seen.moved += 1
      client.server = client.last = server
      server.client = client
      server.adapt(client)
      for (const message_ of client.waiting.splice(0)) server.send(client, message_)
    }
  }

  #rest(server: Server): void {
    if (server.client) server.client.server = null
    server.client = null
    this.#resting.push(server)
    this.#link()
  }

  destroy(): void {
    this.#closed = true
    for (const server of this.#all) server.destroy()
  }
}

/** Reads a start-up message; empty where it is none of protocol 3.0. */
function parametersOf(bytes: Buffer): Record<string, string> {
  if (bytes.readInt32BE(4) !== protocol3) return {}
  const words = bytes.subarray(8).toString().split('\0')
  return Object.fromEntries(
    Array.from({ length: Math.floor(words.length / 2) }, (_, i) => [words[2 * i] ?? '', words[2 * i + 1] ?? '']),
  )
}

/** No process id at all: a pooler cancels by a key of its own, which is any 32 bits. */
const foreignPid = -2_000_000_000

export async function startPooler(target: string, size: number, { carriesNames = false } = {}): Promise<Pooler> {
  const server = new URL(target)
  const url = new URL(target)
  const parameters = { user: decodeURIComponent(url.username), database: url.pathname.slice(1) }
  const seen = { transactions: 0, moved: 0, refusedStarts: 0 }
  const pool = new Pool(() => Server.open(server, parameters, carriesNames ? new CarriedNames() : null), seen)
  await Promise.all(Array.from({ length: size }, () => pool.grow()))
  const sockets = new Set<Socket>()
  const greet = (socket: Socket, opening: Buffer): boolean => {
    const refused = Object.keys(parametersOf(opening)).find((name) => name !== '' && !startupParameters.has(name))
    if (refused !== undefined) {
      seen.refusedStarts += 1
      const report = ['SFATAL', 'C08P01', `Munsupported startup parameter: ${refused}`, '']
      socket.end(message('E', ...report))
      return false
    }
    const told = Object.entries(serverParameters).map(([name, value]) => message('S', name, value))
    const ready = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
    socket.write(Buffer.concat([message('R', 0), ...told, message('K', foreignPid, 1), ready]))
    return true
  }
  const listener = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    const client = new Client(socket)
    const messages = new Messages()
    let opening: Buffer | null = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      let rest = chunk
      if (opening !== null) {
        opening = Buffer.concat([opening, chunk])
        if (opening.length < 4 || opening.length < opening.readInt32BE(0)) return
        const length = opening.readInt32BE(0)
        rest = opening.subarray(length)
        if (!greet(socket, opening.subarray(0, length))) return
        client.parameters = parametersOf(opening.subarray(0, length))
        opening = null
      }
      for (const each of messages.push(rest)) pool.pass(client, each)
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      sockets.delete(socket)
      pool.leave(client)
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  url.hostname = '127.0.0.1'
  url.port = String((listener.address() as AddressInfo).port)
  return {
    url: url.href,
    seen,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      pool.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
}
