/** What is advised about a send that failed, by what is known of it; what is said of looks, and of an answer that is lost here. */
import { describe, expect, it } from 'vitest'
import { trustRejected } from '../../actors/card-trust.ts'
import { outboundSentences } from '../../actors/outbound/policy.ts'
import type { DeliveryRecord } from '../../domain/actor.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import { credentialSentences } from '../../domain/credential.ts'
import type { CommandEvidence } from '../../domain/evidence.ts'
import { unstoredAnswer } from '../../domain/lost-answer.ts'
import { nextByPerson } from '../../domain/next-words.ts'
import { dueGraceMs } from '../../domain/unread-agent.ts'
import { at, nowMs } from './seen-actors.ts'

const record = (more: Partial<DeliveryRecord>): DeliveryRecord => ({
  action: 'send',
  localId: null,
  acceptedAt: at(-90_000),
  leftAt: null,
  endedAt: at(-80_000),
  ended: null,
  cause: null,
  ...more,
})

describe('a send that failed', () => {
  const told = (error: string, ended: DeliveryRecord['ended'] = null, action: 'send' | 'cancelTask' = 'send') =>
    explainCommand({ status: 'failed', error, action }, nowMs, record({ ended }))?.sentences
  /** As pages ask that do not have its record. */
  const unrecorded = (error: string, ended?: DeliveryRecord['ended']) =>
    explainCommand({ status: 'failed', error, action: 'send', ...(ended && { ended }) }, nowMs)?.sentences

  it('is to be sent later where the agent had too much at once, and is not to be changed', () => {
    for (const said of ['HTTP 429 Too Many Requests', 'Rate limit exceeded', 'Too many requests, slow down'])
      for (const sentences of [told(said, 'refused'), told(said, 'refused', 'cancelTask'), unrecorded(said)])
        expect(sentences).toEqual([
          `${said}.`,
          'It was too much at once for the agent, which did nothing. Try again later.',
        ])
  })

  it('is to be changed or sent again where the agent refused it as wrong', () => {
    const change = 'The agent did not take the message. Change it, or send it again.'
    expect(told('HTTP 413 Payload Too Large', 'refused')).toEqual(['HTTP 413 Payload Too Large.', change])
    expect(unrecorded('No such skill.')).toEqual(['No such skill.', change])
    for (const said of ['rate_limit must be a number', 'No such plan of rate limiting'])
      expect(told(said, 'refused')).toEqual([`${said}.`, change])
    // An agent may say what a console says: who answered was reached.
    expect(told(trustRejected, 'refused')?.[1]).toBe(change)
    // Nobody can change a cancel.
    expect(told('Not now', 'refused', 'cancelTask')).toEqual([
      'Not now.',
      'The agent did not take the cancel. Look at the task, or cancel it again.',
    ])
  })

  it.each([
    'gRPC transport is unavailable under the hardened network policy; advertise an HTTP binding.',
    'The Agent Card advertises no interface that can be used.',
    trustRejected,
    outboundSentences['origin-not-allowed'],
    outboundSentences['https-required'],
    outboundSentences['blocked-address'],
    'Agent Card discovery failed. Tried: https://agent.example/card (HTTP 404)',
  ])('is not called refused where nothing was sent, with its record or without: %s', (error) => {
    const expected = [error.replace(/\.?$/, '.'), 'Nothing was sent. Try again once that has changed.']
    expect(told(error, 'undelivered')).toEqual(expected)
    expect(unrecorded(error)).toEqual(expected)
  })

  it('may be sent again at once where only the interface that was chosen for it is gone', () => {
    const sentences = unrecorded('The selected interface is no longer advertised by the Agent Card.')
    expect(sentences?.join(' ')).toMatch(/ Nothing was sent\. Send again: that goes by the card as it is now\.$/)
  })

  it('is not called refused by any other words either, where its record says that nothing was sent', () => {
    for (const ended of ['unsent', 'undelivered'] as const)
      for (const sentences of [told('HTTP 429', ended), unrecorded('HTTP 429', ended)])
        expect(sentences?.[1]).toBe('Nothing was sent. Try again once that has changed.')
  })

  it('leads to an administrator where the agent, or the console, wants other credentials', () => {
    const { oauth: _, vault: __, ...ofAgent } = credentialSentences
    for (const sentence of Object.values(ofAgent)) expect(told(sentence, 'refused')?.[1]).toMatch(/^An administrator/)
  })
})

const evidence = (more: Partial<CommandEvidence>): CommandEvidence => ({
  outcome: 'absent',
  looks: 1,
  lookedAt: at(-30_000),
  nextLookAt: at(0),
  isWhole: true,
  taskId: null,
  localId: null,
  localState: null,
  taskState: null,
  messageId: 'm-1',
  sentence: 'It was not found.',
  ...more,
})
const doubt = { status: 'uncertain', error: null, action: 'send' } as const

describe('a look that is due', () => {
  const last = (more: number, of: Partial<CommandEvidence> = {}) =>
    explainCommand(doubt, nowMs + more, null, evidence(of))?.known.at(-1)

  it('and that nobody makes is not promised any more', () => {
    expect(last(dueGraceMs)).toEqual({ words: 'It is looked for again', at: at(0) })
    expect(last(dueGraceMs + 1)).toEqual({ words: 'It was to be looked for again', at: at(0) })
    expect(last(dueGraceMs + 1, { outcome: 'pending', looks: 0 })?.words).toBe('It was to be looked for')
  })

  it('is no sending, which is what does not happen by itself', () => {
    expect(nextByPerson).toMatch(
      /^Nothing is sent again by itself\. Where it may have left, it is looked for at the agent for as long as looks/,
    )
  })
})

describe('an answer that came and could not be stored', () => {
  const cause = unstoredAnswer('ENOSPC')
  const told = (outcome: CommandEvidence['outcome'], action: 'send' | 'cancelTask' = 'send') =>
    explainCommand({ ...doubt, action }, nowMs, record({ ended: 'unknown', cause }), evidence({ outcome }))

  it.each(['found', 'absent', 'pending'] as const)('is called lost, whatever a look shows: %s', (outcome) => {
    expect(told(outcome)).toMatchObject({ tone: 'warn', title: 'The agent’s answer is lost' })
    expect(told(outcome)?.sentences[0]).toMatch(
      /^The agent answered the message, and what it said is lost: the console could not store its files\./,
    )
    expect(JSON.stringify(told(outcome))).not.toMatch(/did not hear|no answer here/)
    expect(told(outcome, 'cancelTask')?.sentences[0]).toMatch(/^The agent answered the cancel, /)
  })

  it('is not called unheard either where the cause is not read', () => {
    const found = explainCommand(doubt, nowMs, null, evidence({ outcome: 'found' }))
    expect(found?.title).toBe('It reached the agent')
    expect(found?.sentences[0]).toMatch(/^There is no answer here that says how it ended\. The message was found/)
  })
})
