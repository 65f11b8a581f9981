/**
 * The A2UI agent: shows a small interface instead of asking in words. Owns one surface of A2UI v0.9 and what its
 * buttons do. Components are the basic catalog's, and only those that a console can show without loading anything.
 */
import type { Message, Part } from '../../a2a/messages.ts'
import { wordsOf } from './turn.ts'
import type { DemoAgent, Turn } from './turn.ts'

const uri = 'https://a2ui.org/a2a-extension/a2ui/v0.9'
const catalogId = 'https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json'
const mediaType = 'application/json+a2ui'
const version = 'v0.9'
const surfaceId = 'departure-board'

export function a2uiAgent(): DemoAgent {
  return {
    name: 'Departure board',
    description: 'Answers with an interface: choose a train and a class, and press the button.',
    outputModes: ['text/plain', 'application/json', mediaType],
    extensions: [{ uri, description: 'Shows A2UI v0.9 surfaces.', params: { supportedCatalogIds: [catalogId] } }],
    skills: [
      {
        id: 'board',
        name: 'Departure board',
        description: 'Shows a surface with inputs and two buttons, and reacts to them.',
        tags: ['a2ui'],
        examples: ['Show me the board'],
      },
    ],
    play,
  }
}

function play(turn: Turn): void {
  const action = actionIn(turn.message)
  if (!action) return turn.settle('INPUT_REQUIRED', question(turn), [uri])
  if (action.name === 'later') return turn.settle('INPUT_REQUIRED', laterTrains(), [uri])
  turn.working('Printing your ticket…')
  turn.artifact({
    artifactId: 'ticket',
    name: 'Ticket',
    parts: [{ data: action.context, mediaType: 'application/json' }],
  })
  turn.settle('COMPLETED', [{ text: 'Your ticket is printed.' }, a2ui([{ deleteSurface: { surfaceId } }])], [uri])
}

/** The messages of one update, in one part; the media type stands where each version of A2A looks for it. */
const a2ui = (messages: readonly Record<string, unknown>[]): Part => ({
  data: messages.map((message) => ({ version, ...message })),
  mediaType,
  metadata: { mimeType: mediaType },
})

function question(turn: Turn): Part[] {
  const heard =
    turn.answers && wordsOf(turn.message) !== '' ? 'Use the board, please: I only read buttons.' : 'Choose a train.'
  const value = { trip: { train: ['08:15'], class: ['second'], passenger: '', seats: 1, quiet: true } }
  return [
    { text: heard },
    a2ui([
      { createSurface: { surfaceId, catalogId, sendDataModel: true } },
      { updateComponents: { surfaceId, components } },
      { updateDataModel: { surfaceId, value } },
    ]),
  ]
}

function laterTrains(): Part[] {
  const options = [option('09:15 Harbour', '09:15'), option('09:27 Old Mill', '09:27')]
  const train = { ...trainPicker, options }
  return [
    { text: 'These leave after nine.' },
    a2ui([
      { updateComponents: { surfaceId, components: [train] } },
      { updateDataModel: { surfaceId, path: '/trip/train', value: ['09:15'] } },
    ]),
  ]
}

const option = (label: string, value: string) => ({ label, value })
const text = (id: string, words: unknown, variant = 'body') => ({ id, component: 'Text', text: words, variant })

const trainPicker = {
  id: 'train',
  component: 'ChoicePicker',
  label: 'Train',
  variant: 'mutuallyExclusive',
  options: [option('08:15 Harbour', '08:15'), option('08:27 Old Mill', '08:27'), option('08:40 Airport', '08:40')],
  value: { path: '/trip/train' },
}

/** What the button sends: bindings are resolved by whoever shows the surface, at the click. */
const chosen = {
  train: { path: '/trip/train' },
  class: { path: '/trip/class' },
  passenger: { path: '/trip/passenger' },
  seats: { path: '/trip/seats' },
  quiet: { path: '/trip/quiet' },
}

const components = [
  { id: 'root', component: 'Card', child: 'column' },
  {
    id: 'column',
    component: 'Column',
    children: ['title', 'train', 'class', 'passenger', 'seats', 'quiet', 'line', 'summary', 'buttons'],
  },
  text('title', 'Departures', 'h2'),
  trainPicker,
  {
    id: 'class',
    component: 'ChoicePicker',
    label: 'Class',
    variant: 'mutuallyExclusive',
    options: [option('First', 'first'), option('Second', 'second')],
    value: { path: '/trip/class' },
  },
  { id: 'passenger', component: 'TextField', label: 'Passenger', value: { path: '/trip/passenger' } },
  { id: 'seats', component: 'Slider', label: 'Seats', min: 1, max: 6, value: { path: '/trip/seats' } },
  { id: 'quiet', component: 'CheckBox', label: 'Quiet coach', value: { path: '/trip/quiet' } },
  { id: 'line', component: 'Divider' },
  text(
    'summary',
    { call: 'formatString', args: { value: 'Train ${/trip/train/0}, seats: ${/trip/seats}' }, returnType: 'string' },
    'caption',
  ),
  { id: 'buttons', component: 'Row', children: ['buy', 'later'] },
  text('buy-label', 'Buy'),
  {
    id: 'buy',
    component: 'Button',
    child: 'buy-label',
    variant: 'primary',
    action: { event: { name: 'buy', context: chosen } },
  },
  text('later-label', 'Later trains'),
  { id: 'later', component: 'Button', child: 'later-label', action: { event: { name: 'later', context: {} } } },
]

interface Click {
  readonly name: string
  readonly context: unknown
}

/** The first action in a message; clients send a list of messages in one part, some one message a part. */
function actionIn(message: Message): Click | undefined {
  for (const { data } of message.parts)
    for (const entry of Array.isArray(data) ? data : [data]) {
      const action: unknown =
        typeof entry === 'object' && entry !== null && 'action' in entry ? entry.action : undefined
      if (typeof action !== 'object' || action === null || !('name' in action)) continue
      if (typeof action.name === 'string')
        return { name: action.name, context: 'context' in action ? action.context : {} }
    }
  return undefined
}
