/**
 * Reads what a PostgreSQL client says, as far as one question needs it: is this COMMIT? Statements may be prepared under a
 * name and their text never be sent again, so names are learnt. One instance a connection. Source: the protocol's message
 * formats, PostgreSQL 18 documentation, 54.7.
 */
const lengthBytes = 4

export class CommitWatch {
  #rest: Buffer = Buffer.alloc(0)
  #started = false
  readonly #commits = new Set<string>()
  #bound = false

  /** Takes a part of the client's bytes; true when it holds an Execute of COMMIT. */
  hears(chunk: Buffer): boolean {
    this.#rest = Buffer.concat([this.#rest, chunk])
    let committed = false
    for (;;) {
      // The first message has no type byte.
      const head = this.#started ? 1 : 0
      if (this.#rest.length < head + lengthBytes) return committed
      const length = head + this.#rest.readUInt32BE(head)
      if (this.#rest.length < length) return committed
      const body = this.#rest.subarray(head + lengthBytes, length)
      if (this.#started && this.#isCommit(String.fromCharCode(this.#rest[0] ?? 0), body)) committed = true
      this.#started = true
      this.#rest = this.#rest.subarray(length)
    }
  }

  #isCommit(type: string, body: Buffer): boolean {
    const [first = '', second = ''] = body.toString('latin1').split('\0', 2)
    if (type === 'Q') return isCommit(first)
    if (type === 'P') {
      if (isCommit(second)) this.#commits.add(first)
      else this.#commits.delete(first)
    }
    // A Bind names the portal, then the statement.
    if (type === 'B') this.#bound = this.#commits.has(second)
    return type === 'E' && this.#bound
  }
}

const isCommit = (sql: string): boolean => /^\s*commit\b/i.test(sql)
