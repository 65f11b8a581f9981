/** What is said to a person who is about to send a message once more. */
import { describe, expect, it } from 'vitest'
import type { CommandEvidence } from '../../domain/evidence.ts'
import { againWords, isSaidAgain, type SentBefore } from '../../domain/send-again.ts'
import type { SettleDecision } from '../../domain/settlement.ts'

const evidence = (more: Partial<CommandEvidence>): CommandEvidence => ({
  outcome: 'absent',
  looks: 1,
  lookedAt: '2026-11-22T09:00:00.000Z',
  nextLookAt: null,
  isWhole: true,
  taskId: null,
  localId: null,
  taskState: null,
  localState: null,
  messageId: 'm1',
  sentence: 'The message was not found at the agent, which does not prove that it never arrived.',
  ...more,
})
const words = (sent: Partial<SentBefore>) =>
  againWords({ status: 'uncertain', delivery: null, evidence: null, settlement: null, ...sent })

describe('sending again', () => {
  it('names the task in which the message was found, and asks once more', () => {
    const sentence = 'The agent has the message: it stands in the history of task t1, which was working at that look.'
    const { title, sentences, caution } = words({ evidence: evidence({ outcome: 'found', taskId: 't1', sentence }) })
    expect(title).toBe('The agent has this message (task t1)')
    expect(sentences[0]).toBe(sentence)
    expect(caution?.sentences[0]).toBe(sentence)
  })

  it.each(['succeeded', 'pending', 'dispatching'] as const)('asks once more about one that %s', (status) => {
    expect(words({ status }).caution).not.toBeNull()
  })

  it.each([
    [null, 'If the agent has it already'],
    [evidence({}), 'does not prove that it never arrived'],
  ])('says that an agent may have what was not found', (found, said) => {
    const { title, sentences, caution } = words({ evidence: found })
    expect(title).toBe('The agent may have this message')
    expect(sentences.join(' ')).toContain(said)
    expect(caution).toBeNull()
  })

  it.each([
    ['undelivered', 'Nothing of this reached the agent'],
    ['unsent', 'Nothing of this reached the agent'],
    ['refused', 'The agent did not take this message'],
    // Its log is gone, so nothing is said of where it ended.
    [null, 'This message was not delivered'],
  ] as const)('says of a failure that ended %s: %s', (ended, title) => {
    const said = words({ status: 'failed', delivery: { ended } })
    expect([said.tone, said.title, said.caution]).toEqual(['quiet', title, null])
    expect(said.sentences.join(' ')).not.toMatch(/sent before|twice/)
  })
})

it('asks once more where the agent answered, for another skill: it has done something', () => {
  const said = words({ status: 'failed', delivery: { ended: 'crossed' } })
  expect([said.tone, said.title]).toEqual(['warn', 'The agent has this message'])
  expect(said.caution?.sentences.join(' ')).toContain('for another skill')
})

describe('sending again what somebody settled', () => {
  const by = { id: 'grace', name: 'Grace' }
  const settled = (decision: SettleDecision, sent: Partial<SentBefore> = {}) => {
    const settlement = { decision, note: null, by, at: '2026-11-23T10:00:00.000Z', successorId: null }
    const { title, sentences, caution } = words({ settlement, ...sent })
    return { title, sentences: sentences.map((each) => each.replaceAll(/[\u2068\u2069]/g, '')), caution }
  }

  it.each([
    ['arrived', 'The agent has this message', 'Grace settled it: the agent has it.'],
    ['sent-again', 'This message was sent again already', 'Grace settled it: it was sent again.'],
  ] as const)('asks once more where it is settled as %s, and says by whom', (decision, title, sentence) => {
    const said = settled(decision)
    expect([said.title, said.sentences[0]]).toEqual([title, sentence])
    expect(said.caution?.title).toBe('Say it twice?')
    expect(settled(decision, { status: 'failed' }).caution).not.toBeNull()
  })

  it.each(['not-arrived', 'no-matter'] as const)('says who settled it as %s, and what is known beside', (decision) => {
    expect(settled(decision).sentences[0]).toMatch(/^Grace settled it: /)
    expect(settled(decision).caution).toBeNull()
    const found = evidence({ outcome: 'found', taskId: 't1' })
    expect(settled(decision, { evidence: found }).caution?.title).toBe('Say it twice?')
  })
})

describe('what takes the place of the earlier one', () => {
  const offered = { agentId: 'one', tenant: '', skillId: null, text: 'no\n', filled: true, dismissed: false }
  const to = { agentId: 'one', tenant: '', skillId: null }

  it('is the same words to the same address', () => {
    expect(isSaidAgain(offered, ' no ', to)).toBe(true)
    expect(isSaidAgain({ ...offered, skillId: 'pay' }, 'no', { ...to, skillId: 'pay' })).toBe(true)
  })

  it.each([
    ['other words that hold them', offered, 'not now, wait', to],
    ['more words', offered, 'no, thanks', to],
    ['another agent', offered, 'no', { ...to, agentId: 'two' }],
    ['another tenant', offered, 'no', { ...to, tenant: 'south' }],
    ['another skill', offered, 'no', { ...to, skillId: 'pay' }],
    ['no skill any more', { ...offered, skillId: 'pay' }, 'no', to],
    ['words that were not filled in', { ...offered, filled: false }, 'no', to],
    ['words whose notice was put away', { ...offered, dismissed: true }, 'no', to],
    ['no words', { ...offered, text: ' ' }, '', to],
  ])('is not: %s', (_, before, said, now) => {
    expect(isSaidAgain(before, said, now)).toBe(false)
  })
})
