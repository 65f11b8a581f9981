/** What ends a task in the threads says which of its two times is over: that of the thread that had it, or of the wait for one. */
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { lostAnswers, shownCause } from '../../domain/lost-answer.ts'
import { begin, TaskDeadline } from '../../actors/threads/deadline.ts'
import { ParserPool } from '../../actors/threads/pool.ts'

const wordsOf = async (deadline: TaskDeadline): Promise<string> => {
  if (!deadline.signal.aborted) await once(deadline.signal, 'abort')
  return String(deadline.signal.reason)
}

it('a task that a thread has begun ends by that thread’s time', async () => {
  const deadline = new TaskDeadline({ running: 20, waiting: 100_000 })
  begin(deadline.began)
  expect(await wordsOf(deadline)).toBe('TimeoutError: The thread took too long: 20 ms.')
  expect(deadline.hasWaitedInVain).toBe(false)
})

it('a task that nobody began is not said to have taken a thread too long', async () => {
  const deadline = new TaskDeadline({ running: 10_000, waiting: 20 })
  expect(await wordsOf(deadline)).toBe('TimeoutError: No thread was free for 20 ms.')
  expect(deadline.hasWaitedInVain).toBe(true)
})

it('people and the log are told that nobody had time to read it, not that it cannot be read', async () => {
  const losses: unknown[] = []
  // No thread has started after ten times as long.
  const pool = new ParserPool({ threads: 1, taskDeadlineMs: 0.1, lost: (error) => void losses.push(error) })
  onTestFinished(() => pool.close())
  const endpoint = { url: 'http://127.0.0.1/', binding: 'JSONRPC', version: '1.0' } as const
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'r1', result: { text: 'x'.repeat(100_000) } }))
  const reply = { status: 200, contentType: 'application/json', body }
  const event = await pool.parseReply(endpoint, 'get', reply, 'r1')
  const cause = 'TimeoutError: No thread was free for 1 ms.'
  expect(event).toEqual({ kind: 'invalid', message: lostAnswers.unread, lost: cause })
  expect(losses.map((error) => error instanceof Error && String(error.cause))).toEqual([cause])
  // As the page of a command repeats it.
  expect(shownCause(lostAnswers.unread)).toBe(lostAnswers.unread)
})
