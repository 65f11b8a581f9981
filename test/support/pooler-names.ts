/**
 * Prepared statements behind a pooler that carries them, as PgBouncer does since 1.21: a client's name is known to the pooler
 * alone; on a server the same text has one name for all clients, is prepared there when somebody first needs it, and stays
 * [pgbouncer.org/config.html, max_prepared_statements]. Owns the messages that differ by it, of one server connection.
 */
import { createHash } from 'node:crypto'
import { message, type Message } from './pooler-message.ts'

/** What a client prepared, by its own names. */
export type Carried = Map<string, Statement>
interface Statement {
  readonly serverName: string
  /** A Parse from its text on. */
  readonly rest: Buffer
}

const framed = (type: string, ...parts: readonly (string | Buffer)[]): Message => ({
  type,
  bytes: message(type, ...parts),
})

/** A string that ends with a zero, and where the next thing begins. */
function wordAt(bytes: Buffer, from: number): [string, number] {
  const end = bytes.indexOf(0, from)
  return [bytes.toString('utf8', from, end), end + 1]
}

const named = 'S'

export class CarriedNames {
  readonly #prepared = new Set<string>()
  /** Whose ParseComplete is to come, in order. */
  #parses: { readonly serverName: string; readonly isOurs: boolean }[] = []

  /** What a client's message is for the server. */
  forServer(carried: Carried, asked: Message): readonly Message[] {
    const { type, bytes } = asked
    if (type === 'P') return [this.#parse(carried, asked)]
    if (type === 'B') {
      const [portal, statementAt] = wordAt(bytes, 5)
      const [name, rest] = wordAt(bytes, statementAt)
      return this.#with(carried, asked, name, (serverName) => framed('B', portal, serverName, bytes.subarray(rest)))
    }
    if ((type !== 'D' && type !== 'C') || String.fromCharCode(bytes[5] ?? 0) !== named) return [asked]
    const [name] = wordAt(bytes, 6)
    if (type === 'D')
      return this.#with(carried, asked, name, (serverName) => framed('D', Buffer.from(named), serverName))
    // Others may use it: the server is asked to close what it does not have, for the answer's sake.
    carried.delete(name)
    return [framed('C', Buffer.from(named), `never prepared: ${name}`)]
  }

  #parse(carried: Carried, asked: Message): Message {
    const [name, from] = wordAt(asked.bytes, 5)
    if (name === '') {
      this.#parses.push({ serverName: '', isOurs: false })
      return asked
    }
    const rest = asked.bytes.subarray(from)
    const serverName = `pooler_${createHash('sha256').update(rest).digest('hex').slice(0, 16)}`
    carried.set(name, { serverName, rest })
    // Where it is there already, what is prepared instead is answered alike.
    const at = this.#prepared.has(serverName) ? '' : serverName
    this.#parses.push({ serverName: at, isOurs: false })
    this.#prepared.add(serverName)
    return framed('P', at, rest)
  }

  #with(carried: Carried, asked: Message, name: string, renamed: (serverName: string) => Message): Message[] {
    const statement = carried.get(name)
    if (!statement) return [asked]
    const { serverName, rest } = statement
    if (this.#prepared.has(serverName)) return [renamed(serverName)]
    this.#prepared.add(serverName)
    this.#parses.push({ serverName, isOurs: true })
    return [framed('P', serverName, rest), renamed(serverName)]
  }

  /** Whether the server's message is the client's to hear. */
  isForClient({ type }: Message): boolean {
    return type !== '1' || this.#parses.shift()?.isOurs !== true
  }

  /** The server is ready for whoever comes next: what is unanswered by now was skipped behind an error. */
  rest(): void {
    for (const { serverName } of this.#parses) this.#prepared.delete(serverName)
    this.#parses = []
  }
}
