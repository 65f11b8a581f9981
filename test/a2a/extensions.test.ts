/** Sideband events and skill routes: what is decoded, and what stays ordinary content. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NotCanonical, canonicalJson } from '../../a2a/canonical-json.ts'
import { builtInSidebandUris, decodeSideband, sidebandLimits, sidebandUri } from '../../a2a/extensions/sideband.ts'
import type { SidebandEvent } from '../../a2a/extensions/sideband.ts'
import { routeExtensions, routeMetadata, routedSkill, skillRoutingUri } from '../../a2a/extensions/skill-routing.ts'
import { traceUri } from '../../a2a/extensions/trace.ts'
import type { Artifact, StreamResponse } from '../../a2a/messages.ts'
import { anyPart, eventsWith } from './arbitraries.ts'

const working = { state: 'TASK_STATE_WORKING', timestamp: '2026-11-21T02:37:35.228Z' }
const update = (metadata: Record<string, unknown>): StreamResponse => ({
  statusUpdate: { taskId: 't', contextId: 'c', status: working, metadata },
})
const trace = (
  traceType: string,
  data: Record<string, unknown> = {},
  more: Partial<Artifact> = {},
): StreamResponse => ({
  artifactUpdate: {
    taskId: 't',
    artifact: {
      artifactId: `${traceType}-1`,
      name: traceType,
      parts: [{ data }],
      extensions: [traceUri],
      metadata: { traceType },
      ...more,
    },
  },
})
const decode = (event: StreamResponse, negotiated: readonly string[] = builtInSidebandUris): SidebandEvent[] =>
  decodeSideband(event, negotiated)
const one = (event: StreamResponse): SidebandEvent | undefined => decode(event)[0]

describe('side events in metadata', () => {
  const record = { id: 'e', type: 'usage', title: 'Tokens', level: 'debug', parts: [{ text: '5' }], timestamp: 0 }
  const read = {
    id: 'e',
    type: 'usage',
    title: 'Tokens',
    level: 'debug',
    parts: [{ text: '5' }],
    taskId: 't',
    contextId: 'c',
  }

  it.each([sidebandUri, `${sidebandUri}/events`, `${sidebandUri}/sideband`, 'sideband', 'sidebandEvents'])(
    'under %s',
    (key) => {
      for (const entry of [record, [record], { events: [record] }]) {
        const found = decode(update({ [key]: entry }))
        expect(found).toMatchObject([{ ...read, extensionUri: sidebandUri, timestamp: '1970-01-01T00:00:00.000Z' }])
      }
    },
  )

  it('of a message, of a status message and of a snapshot', () => {
    const message = { messageId: 'm', role: 'ROLE_AGENT' as const, parts: [], metadata: { sideband: record } }
    expect(one({ message: { ...message, taskId: 't', contextId: 'c' } })).toMatchObject(read)
    expect(one({ statusUpdate: { taskId: 't', contextId: 'c', status: { ...working, message } } })).toMatchObject(read)
    // The question stands in the history too: one event.
    const status = { ...working, message }
    expect(decode({ task: { id: 't', contextId: 'c', status, history: [message] } })).toHaveLength(1)
    expect(decode({ message: { ...message, role: 'ROLE_USER' } })).toEqual([])
  })

  it('of the wrapper', () => {
    const data = { toolName: 'search', arguments: {} }
    const event = {
      eventId: 'e',
      eventType: 'tool_call_start',
      agentId: 'a',
      traceId: 'x',
      data,
      timestamp: working.timestamp,
    }
    expect(one(update({ sidebandEvents: [event] }))).toMatchObject({
      id: 'e',
      type: 'tool.started',
      title: 'Tool started: search',
      level: 'info',
      parts: [{ data, mediaType: 'application/json' }],
      timestamp: working.timestamp,
    })
    const limited = { eventId: 'e', eventType: 'rate_limit', data: { action: 'retrying' } }
    expect(one(update({ sideband: limited }))).toMatchObject({ type: 'rate_limit', level: 'warning' })
  })

  it('only for negotiated URIs', () => {
    expect(decode(update({ [sidebandUri]: record }), [])).toEqual([])
    expect(decode(update({ [sidebandUri]: record }), ['urn:other'])).toEqual([])
    expect(decode(update({ sideband: { ...record, extensionUri: 'urn:other' } }))).toEqual([])
    expect(decode(update({ sideband: record }), ['urn:own'])).toMatchObject([{ extensionUri: 'urn:own' }])
    expect(decode(trace('trace.thinking'), [sidebandUri])).toEqual([])
  })

  it('once each, and only what is well formed and within bounds', () => {
    const wrong = [
      null,
      7,
      'x',
      {},
      { type: 7 },
      { type: 'a', parts: [{ text: 1 }] },
      { type: 'a', id: 'x'.repeat(513) },
    ]
    const huge = { ...record, id: 'h', parts: [{ text: 'x'.repeat(sidebandLimits.partsCharacters) }] }
    const many = { ...record, id: 'n', parts: Array.from({ length: 33 }, () => ({ text: '' })) }
    expect(decode(update({ sideband: [record, record, ...wrong, huge, many] }))).toHaveLength(1)
    const flood = Array.from({ length: 500 }, (_, id) => ({ ...record, id: `${id}` }))
    expect(decode(update({ sideband: flood, [sidebandUri]: flood.toReversed() }))).toHaveLength(sidebandLimits.events)
  })

  it('with an id that a replay repeats, where the agent gave none', () => {
    const anonymous = update({ sideband: [{ type: 'a' }, { type: 'b' }] })
    const keys = decode(anonymous).map((event) => event.key)
    expect(new Set(keys).size).toBe(2)
    expect(decode(anonymous).map((event) => event.key)).toEqual(keys)
  })
})

describe('traces', () => {
  it.each<[string, Record<string, unknown>, string, string, string]>([
    ['trace.lifecycle', { eventType: 'agent_started' }, 'agent.started', 'Agent started', 'info'],
    ['trace.lifecycle', { event: 'finished' }, 'agent.finished', 'Agent finished', 'info'],
    ['trace.lifecycle', { eventType: 'agent_error' }, 'agent.error', 'Agent error', 'error'],
    ['trace.mcp.start', { toolName: 'grep' }, 'tool.started', 'Tool started: grep', 'info'],
    ['trace.mcp', { tool_name: 'grep', result: 'x' }, 'tool.completed', 'Tool completed: grep', 'info'],
    ['trace.mcp', { status: 'declined' }, 'tool.declined', 'Tool declined', 'warning'],
    ['trace.mcp', { error: 'no such file' }, 'tool.failed', 'Tool failed', 'error'],
    ['trace.thinking', {}, 'agent.thinking', 'Thinking', 'debug'],
    ['trace.thought', {}, 'agent.thinking', 'Thinking', 'debug'],
    ['trace.decision', {}, 'agent.decision', 'Decision', 'info'],
    ['trace.delegation', {}, 'agent.delegation', 'Delegation', 'info'],
    ['trace.cache-miss', {}, 'trace.cache-miss', 'Cache miss', 'info'],
  ])('%s %j', (traceType, data, type, title, level) => {
    expect(one(trace(traceType, data))).toMatchObject({ type, title, level, parts: [{ data }], extensionUri: traceUri })
  })

  it('by the name where the type is not said, and in a snapshot', () => {
    const named = trace('trace.thinking', {}, { metadata: { timestamp: working.timestamp } })
    expect(one(named)).toMatchObject({ type: 'agent.thinking', timestamp: working.timestamp })
    if (!('artifactUpdate' in named)) throw new Error('no artifact')
    const { artifact } = named.artifactUpdate
    expect(one({ task: { id: 't', status: working, artifacts: [artifact, artifact] } })).toMatchObject({ taskId: 't' })
  })
})

it('reads any event without a fault', () => {
  const { event } = eventsWith(anyPart)
  const holds = fc.property(event, fc.jsonValue(), (carrier, entry) => {
    expect(Array.isArray(decode(carrier))).toBe(true)
    expect(decode(update({ sideband: entry, [traceUri]: entry })).length).toBeLessThanOrEqual(sidebandLimits.events)
  })
  fc.assert(holds)
})

describe('skill routing', () => {
  const host = 'signalbox.example'
  const uri = skillRoutingUri(host)

  it('says the skill, and only when the console does', () => {
    expect(uri).toBe('https://signalbox.example/console/skill-routing/v1')
    expect(routeMetadata(host, { a: 1 }, 's')).toEqual({ a: 1, [uri]: { skillId: 's' } })
    expect(routeMetadata(host, { a: 1, [uri]: { skillId: 'forged' } }, 's')).toEqual({ a: 1, [uri]: { skillId: 's' } })
    expect(routeMetadata(host, { a: 1, [uri]: { skillId: 'forged' } }, null)).toEqual({ a: 1 })
    expect(routeMetadata(host, { [uri]: {} }, null)).toBeUndefined()
    expect(routeMetadata(host, undefined, null)).toBeUndefined()
    expect(routeExtensions(host, ['urn:x', uri], null)).toEqual(['urn:x'])
    expect(routeExtensions(host, [uri, 'urn:x'], 's')).toEqual(['urn:x', uri])
  })

  it.each([
    [{ [uri]: { skillId: 's' } }, 's'],
    [{ [uri]: { skillId: '' } }, null],
    [{ [uri]: 's' }, null],
    [{}, null],
    [undefined, null],
  ])('reads the skill of %j', (metadata, skillId) => {
    expect(routedSkill(host, metadata)).toBe(skillId)
  })
})

describe('canonical JSON', () => {
  it('is RFC 8785', () => {
    expect(canonicalJson({ b: [1e21, 1.0, -0], a: { z: null, é: '\u0001€' } })).toBe(
      '{"a":{"z":null,"é":"\\u0001€"},"b":[1e+21,1,0]}',
    )
  })
  it('is the same for every order of keys', () => {
    const holds = fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const turned = Object.fromEntries(Object.entries(value).toReversed())
      expect(canonicalJson(turned)).toBe(canonicalJson(value))
    })
    fc.assert(holds)
  })
  it.each([[undefined], [Number.NaN], ['\uD800']])('has no form for %j', (value) => {
    expect(() => canonicalJson(value)).toThrow(NotCanonical)
  })
})
