/**
 * A worker thread's entry: owns the one PGlite of a data directory. PGlite is synchronous WebAssembly (one statement is
 * one block of its thread), so it never runs on the main thread. Speaks PostgreSQL's wire protocol in whole messages.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import type { Answer, Errand, Farewell, ThreadOptions } from './pglite-server.ts'

/** Collations of the builtin provider are the same on every machine and on PostgreSQL 17 and newer; PGlite has no ICU. */
const initialLocale = ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '-E', 'UTF8']
/** Single-user mode has no checkpointer: without these limits and our CHECKPOINTs the log grows without end. */
const serverSettings = ['max_wal_size=64MB', 'min_wal_size=32MB', 'shared_buffers=16MB']

const port = parentPort
if (!port) throw new Error('This file runs as a worker thread.')
const { dataDir, template }: ThreadOptions = workerData

/**
 * PostgreSQL's last word, or WebAssembly's: a server's process would end here and recover. PGlite answers with an error and goes on
 * in the middle of a commit that its log may not have, until it spins. Further lines of a message begin with a tab, so that a
 * value in one is not taken for this.
 */
const lastWords = /^(?:[\d-]+ [\d:.]+ \S+ \[\d+\] PANIC: |Aborted\()/

/** In the middle of a statement: what asked for it learns of its end only as the thread's. */
function heed(line: string): boolean {
  if (lastWords.test(line)) {
    port?.postMessage({ lastWords: line } satisfies Farewell)
    process.exit(1)
  }
  return false
}

// Files are created 0666 by default; the directory is also 0700. A thread can't change the process's umask.
const db = await PGlite.create({
  ...(dataDir && { dataDir }),
  onStderr: heed,
  ...(template && { loadDataDir: new Blob([template.slice()]) }),
  initDbStartParams: initialLocale,
  startParams: [...PGlite.defaultStartParams, ...serverSettings.flatMap((setting) => ['-c', setting])],
})

async function exchange(chunks: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  // Not execProtocolRaw: in 0.5.16 it keeps every parsed reply for good (1 GB read took 1.3 GB of memory).
  const parts: Uint8Array[] = []
  await db.execProtocolRawStream(joined(chunks), {
    // The chunk is a view of WebAssembly memory that the next call overwrites.
    onRawData: (part) => void parts.push(part.slice()),
  })
  return joined(parts)
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let offset = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.length
  }
  return whole
}

async function run(errand: Errand): Promise<Uint8Array<ArrayBuffer>> {
  switch (errand.kind) {
    case 'exchange':
      return exchange(errand.chunks)
    case 'dump':
      return new Uint8Array(await (await db.dumpDataDir('none')).arrayBuffer())
    case 'close':
      await db.close()
      return new Uint8Array()
  }
}

port.on('message', (errand: Errand) => {
  run(errand).then(
    (bytes) => port.postMessage({ id: errand.id, bytes } satisfies Answer, [bytes.buffer]),
    (error: unknown) => port.postMessage({ id: errand.id, error } satisfies Answer),
  )
})
port.postMessage({ id: 0, bytes: new Uint8Array() } satisfies Answer)
