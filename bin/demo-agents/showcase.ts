/**
 * The showcase agent: a station master who can do everything a plain A2A agent can. Owns the words a newcomer sees
 * first, so the answer to any message is a varied one and ends with a question. Does not use any extension but traces.
 */
import type { Part } from '../../a2a/messages.ts'
import { trackDiagram } from './png.ts'
import { openTrace, traceExtension } from './trace.ts'
import { wordsOf } from './turn.ts'
import type { DemoAgent, Pace, Turn } from './turn.ts'

const stepsLimit = 120

export function showcaseAgent(pace: Pace): DemoAgent {
  return {
    name: 'Showcase',
    description: 'A station master who streams, counts, asks, draws, refuses and fails, so that you can watch it.',
    outputModes: ['text/plain', 'application/json', 'text/csv', 'image/png'],
    extensions: [traceExtension],
    skills: [
      {
        id: 'departures',
        name: 'Departures',
        description: 'Tells what leaves this morning: streamed words, a table, a link, and a question at the end.',
        tags: ['streaming', 'artifacts', 'question'],
        examples: ['What leaves this morning?', 'hello', 'ask', 'files'],
      },
      {
        id: 'shunting',
        name: 'Slow work',
        description: 'Counts wagons, one a second: something to watch, to leave alone, and to cancel.',
        tags: ['progress', 'cancel'],
        examples: ['slow', 'count to 30'],
      },
      {
        id: 'incidents',
        name: 'Incidents',
        description: 'Ends badly on request.',
        tags: ['failure', 'rejection', 'authentication'],
        examples: ['fail', 'reject', 'auth'],
      },
    ],
    play: (turn) => play(turn, pace),
  }
}

function play(turn: Turn, pace: Pace): Promise<void> | void {
  const words = wordsOf(turn.message).toLowerCase()
  if (turn.answers === 'AUTH_REQUIRED') return turn.settle('COMPLETED', [{ text: 'Thank you, that is a valid pass.' }])
  if (turn.answers) return reply(turn, words)
  const count = /^count to (\d{1,3})\b/.exec(words)?.[1] ?? (/^slow\b/.test(words) ? '30' : undefined)
  if (count !== undefined) return countWagons(turn, Math.min(Number(count), stepsLimit), pace)
  switch (/^\w+/.exec(words)?.[0]) {
    case 'hello':
    case 'hi':
      turn.artifact(
        textArtifact('greeting', 'Good morning. Ask me what leaves today, or say “slow” and watch me count.'),
      )
      return turn.settle('COMPLETED')
    case 'ask':
      return turn.settle('INPUT_REQUIRED', [{ text: 'Which platform do you want to know about: 1, 2 or 3?' }])
    case 'files':
      showFiles(turn)
      return turn.settle('COMPLETED', [{ text: 'Four artifacts: words, a table, two files and a link.' }])
    case 'fail':
      turn.working('Setting the points…')
      return turn.settle('FAILED', [{ text: 'The points at the north junction did not move. Nothing was dispatched.' }])
    case 'reject':
      return turn.settle('REJECTED', [{ text: 'I do not send trains into an occupied section.' }])
    case 'auth':
      return turn.settle('AUTH_REQUIRED', [
        { text: 'Show me your pass first. (Any reply will do in this demonstration.)' },
      ])
    default:
      return tellDepartures(turn, pace)
  }
}

const departures = [
  { time: '08:15', to: 'Harbour', platform: 2, signal: 'clear' },
  { time: '08:27', to: 'Old Mill', platform: 1, signal: 'stop' },
  { time: '08:40', to: 'Airport', platform: 3, signal: 'stop' },
] as const

const story =
  'Three trains leave in the next half hour. The 08:15 to Harbour stands on platform 2 with its signal clear, ' +
  'so it goes first. The 08:27 to Old Mill waits for it, because both need the north junction, and a section ' +
  'holds one train at a time. The 08:40 to Airport follows from platform 3 once the junction is free again.'

async function tellDepartures(turn: Turn, pace: Pace): Promise<void> {
  const trace = openTrace(turn)
  trace('trace.lifecycle', { status: 'started' })
  turn.working('Reading the timetable…')
  trace('trace.mcp.start', { toolName: 'timetable.read', arguments: { from: '08:00', minutes: 60 } })
  await turn.pause(pace.chunkMs * 4)
  trace('trace.mcp', { toolName: 'timetable.read', status: 'completed', result: { trains: departures.length } })
  trace('trace.thinking', {
    content: 'Two of the three need the north junction; the one with a clear signal goes first.',
  })
  const pieces = story.match(/\S+ ?\S* ?\S* ?/g) ?? [story]
  for (const [index, text] of pieces.entries()) {
    const last = index === pieces.length - 1
    turn.artifact({ artifactId: 'answer', name: 'Answer', parts: [{ text }] }, { append: index > 0, last })
    await turn.pause(pace.chunkMs)
  }
  turn.artifact({
    artifactId: 'departures',
    name: 'Departures',
    description: 'What leaves until 09:00',
    parts: [{ data: { departures }, mediaType: 'application/json' }],
  })
  trace('trace.decision', { content: 'Offer the track diagram' })
  trace('trace.lifecycle', { status: 'finished' })
  turn.settle('INPUT_REQUIRED', [{ text: 'Shall I draw the track diagram as well? (yes or no)' }])
}

function reply(turn: Turn, words: string): void {
  turn.working()
  if (/^(no|nein|non)\b/.test(words))
    return turn.settle('COMPLETED', [{ text: 'Then that is all. Have a good journey.' }])
  const platform = /\b([123])\b/.exec(words)?.[1]
  const train = departures.find((departure) => String(departure.platform) === platform)
  if (train) {
    const text = `Platform ${train.platform}: the ${train.time} to ${train.to}, signal at ${train.signal}.`
    turn.artifact(textArtifact('platform', text))
    return turn.settle('COMPLETED')
  }
  showFiles(turn)
  turn.settle('COMPLETED', [
    { text: 'Here it is, with the timetable as a file. Next, try “slow” and cancel it half-way.' },
  ])
}

async function countWagons(turn: Turn, count: number, pace: Pace): Promise<void> {
  turn.working(`Counting ${count} wagons, one at a time. Cancel me whenever you like.`)
  for (let wagon = 1; wagon <= count; wagon++) {
    await turn.pause(pace.stepMs)
    const part = { text: `${wagon}${wagon === count ? '.' : wagon % 10 === 0 ? ',\n' : ', '}` }
    const chunk = { append: wagon > 1, last: wagon === count }
    turn.artifact({ artifactId: 'count', name: 'Wagons', parts: [part] }, chunk)
  }
  turn.settle('COMPLETED', [{ text: `${count} wagons, none missing.` }])
}

function showFiles(turn: Turn): void {
  const csv = ['time,to,platform', ...departures.map((d) => `${d.time},${d.to},${d.platform}`), ''].join('\r\n')
  turn.artifact(textArtifact('notice', 'The waiting room is heated from October to April.'))
  turn.artifact({
    artifactId: 'table',
    name: 'Timetable',
    parts: [{ data: departures, mediaType: 'application/json' }],
  })
  turn.artifact({
    artifactId: 'files',
    name: 'Track diagram and timetable',
    parts: [file(trackDiagram(), 'tracks.png', 'image/png'), file(Buffer.from(csv), 'timetable.csv', 'text/csv')],
  })
  turn.artifact({
    artifactId: 'link',
    name: 'Rule book',
    parts: [
      { url: 'https://signalbox.example/rule-book.pdf', filename: 'rule-book.pdf', mediaType: 'application/pdf' },
    ],
  })
}

const textArtifact = (artifactId: string, text: string) => ({
  artifactId,
  name: `${artifactId.slice(0, 1).toUpperCase()}${artifactId.slice(1)}`,
  parts: [{ text, mediaType: 'text/plain' }],
})

const file = (bytes: Buffer, filename: string, mediaType: string): Part => ({
  raw: bytes.toString('base64'),
  filename,
  mediaType,
})
