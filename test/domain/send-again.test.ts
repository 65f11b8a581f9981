/** What is said to a person who is about to send a message once more. */
import { describe, expect, it } from 'vitest'
import type { CommandEvidence } from '../../domain/evidence.ts'
import { againWords, isSaidAgain, type SentBefore } from '../../domain/send-again.ts'

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
  againWords({ status: 'uncertain', delivery: null, evidence: null, ...sent })

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

describe('what takes the place of the earlier one', () => {
  const offered = { agentId: 'one', text: 'no\n', filled: true, dismissed: false }
  const sent = { agentId: 'one', text: ' no ' }

  it('is the same words to the same agent', () => {
    expect(isSaidAgain(offered, sent)).toBe(true)
  })

  it.each([
    ['other words that hold them', offered, { ...sent, text: 'not now, wait' }],
    ['more words', offered, { ...sent, text: 'no, thanks' }],
    ['another agent', offered, { ...sent, agentId: 'two' }],
    ['words that were not filled in', { ...offered, filled: false }, sent],
    ['words whose notice was put away', { ...offered, dismissed: true }, sent],
    ['no words', { ...offered, text: ' ' }, { ...sent, text: '' }],
  ])('is not: %s', (_, before, now) => {
    expect(isSaidAgain(before, now)).toBe(false)
  })
})
