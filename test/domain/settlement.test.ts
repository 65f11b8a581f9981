/** What a person decided about a send, in words: who, when, how, with which note, and where to go on. */
import { describe, expect, test } from 'vitest'
import { explainCommand } from '../../domain/command-explanation.ts'
import { refusals } from '../../domain/refusal.ts'
import {
  asksTheSame,
  decisionWords,
  isLater,
  needsPerson,
  settledBy,
  SettleDecision,
  settlementRefusals,
  whyNotSettled,
  type Asking,
  type Settlement,
} from '../../domain/settlement.ts'

const at = '2026-11-23T10:00:00.000Z'
const nowMs = Date.parse(at)
const settlement = (more: Partial<Settlement> = {}): Settlement => ({
  decision: 'arrived',
  note: null,
  by: { id: 'grace', name: 'Grace' },
  at,
  successorId: null,
  ...more,
})
const plain = (text: string): string => text.replaceAll(/[\u2068\u2069]/g, '')
const told = (more: Partial<Settlement> = {}, action: 'send' | 'cancelTask' = 'send') =>
  explainCommand({ status: 'uncertain', error: null, action }, nowMs, null, null, settlement(more))

describe('a settled send', () => {
  test('needs nobody, and says who settled it, when, how, and that its record stays', () => {
    const here = told({ note: 'Asked at the desk.' })
    expect(here).toMatchObject({ tone: 'quiet', title: 'Settled: the agent has it' })
    expect(here?.sentences.map(plain)).toEqual([
      'Grace looked at it and decided so. The record of the send stays as it is: uncertain.',
      'Note: “Asked at the desk.”',
    ])
    expect(here?.known.map(({ words, at: when }) => [plain(words), when])).toEqual([['Grace settled it', at]])
  })

  test('stands among what is on record where it belongs: what is still to come comes after it', () => {
    const delivery = {
      action: 'send',
      localId: null,
      acceptedAt: '2026-11-23T09:00:00.000Z',
      leftAt: null,
      endedAt: null,
      ended: null,
      cause: null,
    } as const
    const evidence = {
      outcome: 'absent',
      looks: 1,
      lookedAt: '2026-11-23T09:30:00.000Z',
      nextLookAt: '2026-11-23T10:30:00.000Z',
      isWhole: true,
      taskId: null,
      localId: null,
      taskState: null,
      localState: null,
      messageId: 'm',
      sentence: 'It was not found.',
    } as const
    const doubt = { status: 'uncertain', error: null, action: 'send' } as const
    const words = explainCommand(doubt, nowMs, delivery, evidence, settlement())?.known.map((each) => plain(each.words))
    expect(words).toEqual(['Accepted and saved', 'It was not found', 'Grace settled it', 'It is looked for again'])
  })

  test('leads to the one that took its place, and offers to send again only what the agent does not have', () => {
    expect(told({ decision: 'sent-again', successorId: 'later' })?.remedies[0]).toBe('open-successor')
    expect(told({ decision: 'sent-again' })?.remedies).not.toContain('open-successor')
    const again = SettleDecision.options.filter((decision) => told({ decision })?.remedies.includes('send-again'))
    expect(again).toEqual(['not-arrived'])
    expect(told({ decision: 'not-arrived' }, 'cancelTask')?.remedies).not.toContain('send-again')
  })

  test('is loud where it was found at the agent that is said not to have it, and not offered to be said twice', () => {
    const found = {
      outcome: 'found',
      looks: 2,
      lookedAt: '2026-11-23T10:05:00.000Z',
      nextLookAt: null,
      isWhole: true,
      taskId: 't1',
      localId: null,
      taskState: null,
      localState: null,
      messageId: 'm',
      sentence: 'The agent has the message: it stands in the history of task t1.',
    } as const
    const about = (decision: Settlement['decision'], action: 'send' | 'cancelTask' = 'send') =>
      explainCommand({ status: 'uncertain', error: null, action }, nowMs, null, found, settlement({ decision }))
    const told = about('not-arrived')
    expect(told).toMatchObject({ tone: 'warn', title: 'Settled as not arrived, but it reached the agent' })
    expect(told?.sentences[0]).toContain('found the message at the agent')
    expect(told?.sentences.map(plain)[1]).toContain('Grace looked at it and decided so.')
    expect(told?.remedies).not.toContain('send-again')
    expect(about('not-arrived', 'cancelTask')?.sentences[0]).toContain('the task is canceled')
    for (const decision of ['arrived', 'sent-again', 'no-matter'] as const) expect(about(decision)?.tone).toBe('quiet')
  })

  test('has words for every decision, and is explained as ever where nobody decided', () => {
    expect(new Set(Object.values(decisionWords)).size).toBe(SettleDecision.options.length)
    expect(explainCommand({ status: 'uncertain', error: null, action: 'send' }, nowMs)?.tone).toBe('warn')
    expect(
      explainCommand({ status: 'succeeded', error: null, action: 'send' }, nowMs, null, null, settlement()),
    ).toBeUndefined()
  })
})

test('what a person is needed for: what failed and what is uncertain', () => {
  const statuses = ['pending', 'dispatching', 'succeeded', 'failed', 'uncertain'] as const
  expect(statuses.filter(needsPerson)).toEqual(['failed', 'uncertain'])
})

test('why it was refused is said in words of the page, by the sentences that the API has', () => {
  for (const [name, sentence] of Object.entries(settlementRefusals)) {
    expect(sentence).toBe(refusals[`settlement.${name as keyof typeof settlementRefusals}`])
    const words = whyNotSettled({ status: 409, message: sentence })
    expect(words).not.toBe(sentence)
    expect(words).not.toMatch(/successorId|409/)
  }
  expect(whyNotSettled({ status: 403, message: refusals['action.forbidden'] })).toContain('permission to send')
  expect(whyNotSettled({ status: 0, message: 'The console did not answer.' })).toBe('The console did not answer.')
  expect(plain(settledBy(settlement()))).toBe('Grace settled it: the agent has it')
})

describe('one command may take the place of another', () => {
  const send: Asking = { action: 'send', agentId: 'one', tenant: '', skillId: null, remoteTaskId: 'a' }
  const cancel: Asking = { ...send, action: 'cancelTask' }

  test.each<[string, Asking, Asking, boolean]>([
    ['that asks the same', send, send, true],
    ['that says it in another task', send, { ...send, remoteTaskId: null }, true],
    ['that cancels the same task', cancel, cancel, true],
    ['not one that cancels another', cancel, { ...cancel, remoteTaskId: 'b' }, false],
    ['not one of the other kind', send, cancel, false],
    ['not one to another agent', send, { ...send, agentId: 'two' }, false],
    ['not one to another tenant', send, { ...send, tenant: 'south' }, false],
    ['not one of a skill', send, { ...send, skillId: 'pay' }, false],
    ['not one of another skill', { ...send, skillId: 'pay' }, { ...send, skillId: 'ship' }, false],
  ])('%s', (_, one, other, same) => {
    expect([asksTheSame(one, other), asksTheSame(other, one)]).toEqual([same, same])
  })

  test('and be dated before it by another replica, by less than a minute', () => {
    const dated = (seconds: number) => ({ createdAt: new Date(Date.parse(at) + seconds * 1000).toISOString() })
    expect([-60, -59, 0, 60].map((seconds) => isLater(dated(seconds), { createdAt: at }))).toEqual([
      false,
      true,
      true,
      true,
    ])
  })
})
