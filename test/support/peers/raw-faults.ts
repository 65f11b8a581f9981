/**
 * Everything that can go wrong before or instead of an answer, written straight to the socket because no HTTP framework
 * would. Owns the faults of whole responses. Does not own what may go wrong inside a stream of events (raw-stream.ts).
 * Each fault that sends much is bounded, so that a reader without a limit fails its test instead of the machine.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createGzip } from 'node:zlib'

export type AnswerFault =
  /** Never writes a byte. */
  | { readonly fault: 'hang-before-head' }
  /** Writes a 200 head and nothing more. */
  | { readonly fault: 'hang-after-head'; readonly type?: string }
  /** Answers properly, but only after so many milliseconds: for the tests of deadlines, which are about time. */
  | { readonly fault: 'delay'; readonly delayMs: number }
  /** Resets the connection with the request read; `performed` says whether the agent did the work all the same. */
  | { readonly fault: 'reset'; readonly performed: boolean }
  /** Answers with this status. */
  | { readonly fault: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly fault: 'redirect'; readonly location: string; readonly status?: 301 | 302 | 303 | 307 | 308 }
  /** A JSON-RPC error for this request, or the error body of HTTP+JSON; with the binding's usual status unless one is given. */
  | { readonly fault: 'error'; readonly code: number; readonly message: string; readonly status?: number }
  /** These exact bytes, with 200 unless another status is given; see `garbage`, `wrongTypes`, `deepJson` and `declinedWithTask`. */
  | {
      readonly fault: 'body'
      readonly body: string
      readonly headers?: Readonly<Record<string, string>>
      readonly status?: number
    }
  /** 200 with spaces, compressed about a thousandfold. */
  | { readonly fault: 'gzip-bomb'; readonly bytes: number; readonly type?: string }
  /** 200 with a string so long, not compressed. */
  | { readonly fault: 'flood'; readonly bytes: number; readonly type?: string }
  /** A 200 head that promises more than comes, and our half of the connection closed. */
  | { readonly fault: 'cut-short'; readonly body: string; readonly type?: string }
  /** A head that goes on, for at most so many bytes. */
  | { readonly fault: 'endless-headers'; readonly bytes: number }
  /** One space every so often, never an end. */
  | { readonly fault: 'trickle'; readonly everyMs: number; readonly type?: string }

/** Answers properly, after heads of these statuses that nobody asked for. */
export interface InterimFault {
  readonly fault: 'interim'
  readonly statuses: readonly number[]
}
export const interimHeads = ({ statuses }: InterimFault): string =>
  statuses.map((status) => `HTTP/1.1 ${status} Interim\r\n\r\n`).join('')

const json = { 'content-type': 'application/json' }
const typed = ({ type }: { readonly type?: string }) => (type === undefined ? json : { 'content-type': type })

export const garbage: AnswerFault = { fault: 'body', body: '{"jsonrpc": "2.0", "result": {"task', headers: json }
/** Well-formed JSON whose every field has a type it must not have. */
export const wrongTypes: AnswerFault = {
  fault: 'body',
  body: '{"jsonrpc":2,"id":{},"result":{"task":{"id":7,"status":[],"artifacts":{}}},"name":[],"supportedInterfaces":"x"}',
  headers: json,
}
/** A refusal in the form of either binding, with the task that was made all the same. */
export function declinedWithTask(taskId: string): AnswerFault {
  const task = { id: taskId, status: { state: 'TASK_STATE_WORKING' } }
  const body = JSON.stringify({ error: { code: -32602, message: 'no' }, id: null, result: { task }, task })
  return { fault: 'body', status: 400, body, headers: json }
}
/** `{"a":{"a":…` so many levels down. */
export const deepJson = (depth: number): AnswerFault => ({
  fault: 'body',
  body: `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
  headers: json,
})

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The request's JSON-RPC id; undefined over HTTP+JSON. */
  readonly rpcId: unknown
}

/** Answers with a fault. `delay` and a performed `reset` are the caller's, since the agent acts in them. */
export function answerWith(fault: AnswerFault, { request, response, rpcId }: Exchange): void {
  switch (fault.fault) {
    case 'hang-before-head':
    case 'delay':
      return
    case 'hang-after-head':
      response.writeHead(200, typed(fault)).flushHeaders()
      return
    case 'cut-short':
      response.writeHead(200, { ...typed(fault), 'content-length': fault.body.length + 1 }).write(fault.body)
      request.socket.end()
      return
    case 'reset':
      request.socket.resetAndDestroy()
      return
    case 'status':
      response.writeHead(fault.status, { ...json, ...fault.headers }).end(`{"status":${fault.status}}`)
      return
    case 'redirect':
      response.writeHead(fault.status ?? 307, { location: fault.location }).end()
      return
    case 'error':
      writeError(response, rpcId, fault)
      return
    case 'body':
      response.writeHead(fault.status ?? 200, fault.headers).end(fault.body)
      return
    case 'gzip-bomb': {
      response.writeHead(200, { ...typed(fault), 'content-encoding': 'gzip' })
      // A first piece leaves after a megabyte: by the usual one sixteen would be pressed before anybody is sent anything.
      const gzip = createGzip({ chunkSize: 1024 })
      gzip.pipe(response)
      pour(gzip, fault.bytes, ' ')
      return
    }
    case 'flood':
      response.writeHead(200, typed(fault)).write('"')
      pour(response, fault.bytes, 'x')
      return
    case 'endless-headers':
      request.socket.write('HTTP/1.1 200 OK\r\n')
      pour(request.socket, fault.bytes, `x-more: ${'y'.repeat(1000)}\r\n`)
      return
    case 'trickle':
      trickle(response, fault)
  }
}

function writeError(response: ServerResponse, rpcId: unknown, fault: AnswerFault & { readonly fault: 'error' }): void {
  const { code, message, status = rpcId === undefined ? 400 : 200 } = fault
  const body =
    rpcId === undefined
      ? { error: { code: status, status: status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL', message } }
      : { jsonrpc: '2.0', id: rpcId, error: { code, message } }
  response.writeHead(status, json).end(JSON.stringify(body))
}

const pourChunkBytes = 64 * 1024

/** Writes as fast as the reader takes it, up to so many bytes, and ends. Stops when the reader goes away. */
function pour(sink: NodeJS.WritableStream | Socket, bytes: number, fill: string): void {
  const chunk = fill.repeat(Math.ceil(pourChunkBytes / fill.length))
  let left = bytes
  const more = (): void => {
    while (left > 0) {
      left -= chunk.length
      if (!sink.write(chunk)) {
        sink.once('drain', more)
        return
      }
    }
    sink.end()
  }
  // The reader hangs up on a flood: that is what these tests want, so a write error here is no failure.
  sink.on('error', () => {
    left = 0
  })
  more()
}

function trickle(response: ServerResponse, fault: { readonly everyMs: number; readonly type?: string }): void {
  response.writeHead(200, typed(fault))
  const timer = setInterval(() => response.write(' '), fault.everyMs)
  response.on('close', () => clearInterval(timer))
}
