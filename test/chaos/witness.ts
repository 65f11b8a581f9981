/**
 * The witness: an agent in a process of its own that speaks A2A in both versions and both bindings, and writes every send
 * down (message id, time, the answer it is about to give), with fsync, before a byte of the answer leaves. What it does is
 * said by the message's words: `message`, `file` (a message with one), `task` or `refuse`, and optionally after how many milliseconds; `ask` is a task that
 * waits for a reply, and `hold` one that leaves time to cancel it (so many more
 * milliseconds, if said); `called` and `called-openly` are tasks that it calls about
 * (callbacks.ts). Cancels are written down as sends are. Every answer can be computed from the message id, so a stored result
 * can be told from somebody else's.
 *
 * `node test/chaos/witness.ts <receipts.jsonl> [<calls.jsonl>]`. With the second it does not stream, and calls instead. Its
 * first line on stdout is its origin; it ends when its stdin closes.
 */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { operationOf, recordOf } from '../support/peers/operations.ts'
import { callbackIn, Callbacks } from './callbacks.ts'
import {
  cardOf,
  dialectNames,
  dialects,
  fileOf,
  isOver,
  taskIn,
  wordsIn,
  type Dialect,
  type DialectName,
  type Said,
  type WitnessTask,
} from './dialects.ts'

const [, , receiptFile = '', callFile = ''] = process.argv
const file = openSync(receiptFile, 'a')
const calls = callFile === '' ? null : openSync(callFile, 'a')
const tasks = new Map<string, WitnessTask>()
const listeners = new Map<string, Set<(said: Said) => void>>()
const taskMs = 300
/** A task that nobody cancels ends by itself, and so does every storm. */
const holdMs = 4_000
const cancelMs = 30
const tasksLimit = 50_000

function record(line: Record<string, unknown>, into = file): void {
  writeSync(into, `${JSON.stringify(line)}\n`)
  fsyncSync(into)
}

const callbacks = calls === null ? null : new Callbacks((line) => record(line, calls))

async function send(dialect: DialectName, messageId: string, body: unknown): Promise<Said | 'refused'> {
  const words = wordsIn(body)
  const [plot = 'message', delay = '0', heldMs = holdMs] = words.split(' ')
  const receipt = { messageId, at: Date.now(), dialect }
  const continued = taskIn(body)
  if (continued !== '') return reply(receipt, tasks.get(continued), Number(delay))
  if (plot === 'refuse') {
    record({ ...receipt, answer: 'refused' })
    await pass(Number(delay))
    return 'refused'
  }
  if (plot === 'task' || plot === 'hold' || plot === 'ask') {
    const task = newTask(dialect, messageId)
    record({ ...receipt, answer: task.id })
    if (plot === 'ask') task.state = 'input-required'
    else void play(task, plot === 'hold' ? Number(heldMs) : 0)
    await pass(Number(delay))
    return { kind: 'task', task }
  }
  if (callbacks && (plot === 'called' || plot === 'called-openly')) {
    const task = newTask(dialect, messageId)
    record({ ...receipt, answer: task.id })
    callbacks.begin(task, plot === 'called')
    return { kind: 'task', task }
  }
  const file = plot === 'file' ? { file: fileOf(messageId) } : {}
  const text = `Answer to ${messageId}.`
  const answer = { kind: 'message' as const, messageId: `answer-${messageId}`, text, ...file }
  record({ ...receipt, answer: answer.messageId })
  await pass(Number(delay))
  return answer
}

/** What a task waited for; it goes on and ends. One that waits for nothing takes no message. */
async function reply(
  receipt: Record<string, unknown>,
  task: WitnessTask | undefined,
  delayMs: number,
): Promise<Said | 'refused'> {
  const isAwaited = task?.state === 'input-required'
  record({ ...receipt, answer: isAwaited ? task.id : 'refused' })
  if (isAwaited) {
    turn(task, 'working')
    void play(task)
  }
  await pass(delayMs)
  return isAwaited ? { kind: 'task', task } : 'refused'
}

/** Written down under the task's name, for it has no other: each task is canceled once at most. */
async function cancel(dialect: DialectName, task: WitnessTask): Promise<Said | 'refused'> {
  const isLate = isOver(task)
  record({ messageId: `cancel-${task.id}`, at: Date.now(), dialect, answer: isLate ? 'refused' : task.id })
  if (!isLate) {
    turn(task, 'canceled')
    tell({ kind: 'status', task })
  }
  await pass(cancelMs)
  return isLate ? 'refused' : { kind: 'task', task }
}

function turn(task: WitnessTask, state: WitnessTask['state']): void {
  task.state = state
  task.stateAt = new Date().toISOString()
}

function tell(said: Exclude<Said, { kind: 'message' }>): void {
  for (const listen of listeners.get(said.task.id) ?? []) listen(said)
}

function newTask(dialect: DialectName, messageId: string): WitnessTask {
  const id = `task-${messageId}`
  const task: WitnessTask = {
    id,
    contextId: `context-${messageId}`,
    messageId,
    dialect,
    state: 'working',
    stateAt: new Date().toISOString(),
    chunks: [],
  }
  tasks.set(id, task)
  const [oldest] = tasks.keys()
  if (tasks.size > tasksLimit && oldest !== undefined) tasks.delete(oldest)
  return task
}

/** Two chunks of one artifact, then the end, unless it is canceled first. */
async function play(task: WitnessTask, waitMs = 0): Promise<void> {
  await pass(waitMs)
  for (const [index, text] of [`Result of `, `${task.messageId}.`].entries()) {
    await pass(taskMs / 3)
    if (isOver(task)) return
    task.chunks.push(text)
    tell({ kind: 'chunk', task, index, last: index === 1 })
  }
  await pass(taskMs / 3)
  if (isOver(task)) return
  turn(task, 'completed')
  tell({ kind: 'status', task })
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function answer(request: IncomingMessage, response: ServerResponse, origin: string): Promise<void> {
  const path = new URL(request.url ?? '/', origin).pathname
  if (path === '/tasks') return writeJson(response, 200, { tasks: [...tasks.values()] })
  const moved = /^\/next\/(.+)$/.exec(path)?.[1]
  if (moved !== undefined) return writeJson(response, 200, { delivered: (await callbacks?.next(moved)) === true })
  const name = dialectNames.find((each) => path.startsWith(`/${each}`))
  if (name === undefined) return writeJson(response, 404, { error: 'no such dialect' })
  if (path.endsWith('.json')) return writeJson(response, 200, cardOf(name, origin, callbacks !== null))
  const body = await readJson(request)
  const { method, messageId = '' } = operationOf(request.method ?? '', path, body)
  const dialect = dialects[name]
  const id = recordOf(body)['id']
  const wrap = (value: unknown): unknown => (dialect.rpc ? { jsonrpc: '2.0', id, result: value } : value)
  if (method === 'SendMessage') {
    const said = await send(name, messageId, body)
    if (said === 'refused') return refuse(response, dialect, id, -32602, 'No.')
    return writeJson(response, 200, wrap(dialect.event(said)))
  }
  const asked = callbacks && callbackIn(request.method ?? '', path, body)
  if (asked) return writeJson(response, 200, wrap(callbacks.heed(asked)))
  const given = recordOf(recordOf(body)['params'])['id'] ?? /\/tasks\/([^/:]+)/.exec(path)?.[1] ?? ''
  const task = tasks.get(decodeURIComponent(String(given)))
  if (!task) return refuse(response, dialect, id, -32001, 'Task not found')
  if (callbacks && !(await callbacks.shows(task.id))) return writeJson(response, 503, { error: 'I call.' })
  if (method === 'GetTask') return writeJson(response, 200, wrap(dialect.task(task)))
  if (method === 'SubscribeToTask') return follow(response, task, (said) => wrap(dialect.event(said)))
  if (method === 'CancelTask') {
    const said = await cancel(name, task)
    if (said === 'refused') return refuse(response, dialect, id, -32002, 'It is over.')
    return writeJson(response, 200, wrap(dialect.task(task)))
  }
  return refuse(response, dialect, id, -32601, `No method ${method}`)
}

function follow(response: ServerResponse, task: WitnessTask, frame: (said: Said) => unknown): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const listen = (said: Said): void => {
    response.write(`data: ${JSON.stringify(frame(said))}\n\n`)
    if (isOver(task)) response.end()
  }
  listen({ kind: 'task', task })
  const all = listeners.get(task.id) ?? new Set()
  listeners.set(task.id, all.add(listen))
  response.on('close', () => all.delete(listen))
}

/** An error that says that nothing was done: HTTP 400 or 404 where the binding has statuses, a JSON-RPC error elsewhere. */
function refuse(response: ServerResponse, dialect: Dialect, id: unknown, code: number, message: string): void {
  const status = code === -32001 ? 404 : 400
  if (dialect.rpc) writeJson(response, 200, { jsonrpc: '2.0', id, error: { code, message } })
  else if (dialect.version === '0.3') writeJson(response, status, { code, message })
  else writeJson(response, status, { error: { code: status, status: 'INVALID_ARGUMENT', message } })
}

function writeJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('utf8')
  return text === '' ? undefined : (JSON.parse(text) as unknown)
}

let origin = ''
const server = createServer((request, response) => {
  // A console that is killed hangs up in the middle of a request: no request, no receipt.
  answer(request, response, origin).catch(() => response.destroy())
})
server.listen(0, '127.0.0.1', () => {
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  process.stdout.write(`${origin}\n`)
})
process.stdin.once('end', () => {
  closeSync(file)
  process.exit(0)
})
process.stdin.resume()
