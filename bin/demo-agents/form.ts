/**
 * The form agent: asks with a structured form instead of a sentence. Owns one form and what comes of it. It asks
 * through the structured form extension and understands the same values as a start form, or plain words from a console
 * that knows neither.
 */
import { dataOf, wordsOf } from './turn.ts'
import type { DemoAgent, Turn } from './turn.ts'

const mediaType = 'application/vnd.console.form+json'

/** Every kind of field the extension knows, once. */
const seatReservation = {
  title: 'Reserve a seat',
  description: 'The 08:15 to Harbour has seats left. Fill this in and I will put your name on one.',
  submitLabel: 'Reserve',
  order: ['name', 'coach', 'seats'],
  schema: {
    type: 'object',
    required: ['name', 'coach', 'seats'],
    properties: {
      name: { type: 'string', title: 'Name', minLength: 2, maxLength: 80 },
      coach: {
        title: 'Coach',
        enum: ['quiet', 'family', 'bicycle'],
        enumNames: ['Quiet coach', 'Family coach', 'Coach with bicycle racks'],
        default: 'quiet',
      },
      seats: { type: 'integer', title: 'Seats', minimum: 1, maximum: 6, default: 1 },
      budget: { type: 'number', title: 'Most you would pay', minimum: 0, maximum: 500 },
      window: { type: 'boolean', title: 'At a window', default: true },
      wishes: { type: 'string', format: 'multiline', title: 'Wishes', maxLength: 1_000 },
    },
  },
}

/** Also what a task can be started with. */
const startForm = {
  ...seatReservation,
  title: 'Reserve a seat at once',
  description: 'Start with the form instead of a message.',
}

export function formAgent(extensionHost: string): DemoAgent {
  const uri = `https://${extensionHost}/console/structured-form/v1`
  return {
    name: 'Ticket office',
    description: 'Asks with a form: send anything, fill in the form, get your reservation back.',
    outputModes: ['text/plain', 'application/json'],
    extensions: [{ uri, description: 'Asks with structured forms.', params: { startForm } }],
    skills: [
      {
        id: 'reserve',
        name: 'Reserve a seat',
        description: 'Sends a form with every kind of field and shows the values it got.',
        tags: ['form'],
        examples: ['I need a seat to Harbour'],
      },
    ],
    play: (turn) => play(turn, uri),
  }
}

function play(turn: Turn, uri: string): void {
  const values = dataOf(turn.message)
  if (values) return reserve(turn, values)
  const words = wordsOf(turn.message)
  if (turn.answers && words !== '') {
    turn.artifact({ artifactId: 'note', name: 'Note', parts: [{ text: `Noted in your words: ${words}` }] })
    return turn.settle('COMPLETED', [{ text: 'You answered in words; the clerk will fill in the form.' }])
  }
  const question = { text: 'Please fill in the reservation form.' }
  turn.settle('INPUT_REQUIRED', [question, { data: seatReservation, mediaType }], [uri])
}

function reserve(turn: Turn, values: Readonly<Record<string, unknown>>): void {
  turn.working('Looking for a seat…')
  const lines = Object.entries(values).map(
    ([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  turn.artifact({
    artifactId: 'reservation',
    name: 'Reservation',
    parts: [{ text: lines.join('\n') }, { data: values, mediaType: 'application/json' }],
  })
  turn.settle('COMPLETED', [{ text: 'Reserved. These are the values that reached me.' }])
}
