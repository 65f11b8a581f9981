/**
 * What a test agent does, chosen by the words of the message. Owns the plot; does not own any wire shape: a `Stage` is
 * implemented once for the SDK of each protocol version and once for the raw agent, so that all of them act alike.
 *
 * | message    | the agent                                                                        |
 * |------------|----------------------------------------------------------------------------------|
 * | `hello`    | works, gives one text artifact, completes                                        |
 * | `ask`      | asks "Which colour?" (INPUT_REQUIRED); any reply completes it                    |
 * | `auth`     | asks for a sign-in (AUTH_REQUIRED); any reply completes it                       |
 * | `stream N` | gives N appended chunks of one artifact (`chunk 1 ` …), completes                |
 * | `hold`     | works until `script.finish()` or a cancel                                        |
 * | `direct`   | answers with a bare message, without a task                                      |
 * | `fail`     | works, then fails with a reason                                                  |
 * | `reject`   | rejects at once                                                                  |
 * | `files`    | gives four artifacts: text, data, bytes, url; completes                          |
 * | other      | completes with an artifact that repeats the words                                |
 */

/** A part as A2A 1.0 writes it, which is also how the plot is written. `raw` is base64. */
export type PlotPart =
  | { readonly text: string; readonly mediaType?: string }
  | { readonly data: Record<string, unknown>; readonly mediaType?: string }
  | { readonly raw: string; readonly filename: string; readonly mediaType: string }
  | { readonly url: string; readonly filename: string; readonly mediaType: string }

export interface PlotArtifact {
  readonly artifactId: string
  readonly name: string
  readonly parts: readonly PlotPart[]
}

/** State names of A2A 0.3, which those of 1.0 are derived from. */
export type PlotState =
  | 'working'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'rejected'
  | 'input-required'
  | 'auth-required'

export interface Stage {
  /** The message answers a task that waits. */
  readonly isReply: boolean
  status(state: PlotState, text?: string): void
  artifact(artifact: PlotArtifact, place?: { append: boolean; last: boolean }): void
  /** Answers without a task. Nothing else may be said. */
  direct(text: string): void
  /** Waits until the test lets go; null when the task was cancelled meanwhile. */
  hold(): Promise<string | null>
}

const chunksLimit = 10_000

/** Plays one turn. Always ends with a state that is terminal or waits for a person, except after a cancel. */
export async function perform(text: string, stage: Stage): Promise<void> {
  const words = text.trim()
  if (stage.isReply) return answer(stage, `You said: ${words}`)
  if (words === 'direct') return stage.direct('No task needed.')
  if (words === 'reject') return stage.status('rejected', 'Not my kind of work.')
  stage.status('working')
  if (words === 'ask') return stage.status('input-required', 'Which colour?')
  if (words === 'auth') return stage.status('auth-required', 'Sign in first.')
  if (words === 'fail') return stage.status('failed', 'It broke.')
  if (words === 'files') return showFiles(stage)
  if (words === 'hold') {
    const released = await stage.hold()
    if (released !== null) answer(stage, released)
    return
  }
  const count = /^stream (\d{1,5})$/.exec(words)?.[1]
  if (count !== undefined) return streamChunks(stage, Math.min(Number(count), chunksLimit))
  answer(stage, words === 'hello' ? 'Hello.' : words)
}

function answer(stage: Stage, text: string): void {
  stage.artifact({ artifactId: 'answer', name: 'answer', parts: [{ text }] })
  stage.status('completed')
}

function streamChunks(stage: Stage, count: number): void {
  for (let i = 1; i <= count; i++) {
    const chunk = { artifactId: 'answer', name: 'answer', parts: [{ text: `chunk ${i} ` }] }
    stage.artifact(chunk, { append: i > 1, last: i === count })
  }
  stage.status('completed')
}

function showFiles(stage: Stage): void {
  stage.artifact({ artifactId: 'notes', name: 'notes', parts: [{ text: 'Some notes.', mediaType: 'text/plain' }] })
  stage.artifact({
    artifactId: 'table',
    name: 'table',
    parts: [{ data: { rows: [1, 2, 3] }, mediaType: 'application/json' }],
  })
  const raw = Buffer.from('a,b\n1,2\n').toString('base64')
  stage.artifact({ artifactId: 'sheet', name: 'sheet', parts: [{ raw, filename: 'sheet.csv', mediaType: 'text/csv' }] })
  const url = 'https://files.example/report.pdf'
  stage.artifact({
    artifactId: 'report',
    name: 'report',
    parts: [{ url, filename: 'report.pdf', mediaType: 'application/pdf' }],
  })
  stage.status('completed')
}

/** `input-required` → `TASK_STATE_INPUT_REQUIRED`. */
export const stateOf1_0 = (state: PlotState): string => `TASK_STATE_${state.toUpperCase().replace('-', '_')}`
