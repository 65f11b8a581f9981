/** When one looks for a command in doubt, and what a person reads about it. */
import { describe, expect, it } from 'vitest'
import { evidenceSentence, isConclusive, nextLook, type EvidenceSubject } from '../../domain/evidence.ts'

const nothing = { isWhole: true, taskId: null, taskState: null, localState: null, reason: null } as const
const sentence = (subject: Partial<EvidenceSubject> & Pick<EvidenceSubject, 'outcome'>): string =>
  evidenceSentence({ action: 'send', ...nothing, ...subject })

describe('looking for a command', () => {
  it('is done at once, after 15 s, 1 min, 5 min and 1 h, and then no more', () => {
    const at: number[] = []
    for (let next = nextLook(0, 0, 0); next !== null; next = nextLook(at.length, 0, next)) at.push(next)
    expect(at).toEqual([0, 15_000, 60_000, 300_000, 3_600_000])
  })

  it('is not done twice at once where the looks are late', () => {
    const lateMs = 10 * 3_600_000
    expect(nextLook(1, 0, lateMs)).toBe(lateMs + 15_000)
    expect(nextLook(5, 0, lateMs)).toBeNull()
  })

  it('ends when it is found, and only then', () => {
    expect(isConclusive({ ...nothing, outcome: 'found' })).toBe(true)
    for (const outcome of ['absent', 'unreadable', 'unsearchable'] as const)
      expect(isConclusive({ ...nothing, outcome })).toBe(false)
  })
})

describe('what is said of it', () => {
  it.each([
    [{ outcome: 'pending' }, 'Nobody has looked at the agent since.'],
    [
      { outcome: 'found', taskId: 't1', taskState: 'TASK_STATE_INPUT_REQUIRED' },
      'The agent has the message: it stands in the history of task t1, which was input required at that look.',
    ],
    [
      { outcome: 'found', taskId: 't1', taskState: 'TASK_STATE_WORKING', localState: 'TASK_STATE_COMPLETED' },
      'The agent has the message: it stands in the history of task t1.',
    ],
    [{ outcome: 'absent' }, 'The message was not found at the agent, which does not prove that it never arrived.'],
    [
      { outcome: 'absent', isWhole: false },
      'The message was not found at the agent, which does not prove that it never arrived. Not everything could be looked at.',
    ],
    [{ outcome: 'unreadable', reason: 'HTTP 503.' }, 'The agent could not be read. HTTP 503.'],
    [{ outcome: 'unsearchable' }, 'There is nothing in which to look for it.'],
    [{ action: 'cancelTask', outcome: 'found' }, 'The agent says that the task is canceled.'],
    [
      { action: 'cancelTask', outcome: 'absent', taskState: 'TASK_STATE_WORKING' },
      'At that look the agent said that the task was working, not canceled.',
    ],
    [
      { action: 'cancelTask', outcome: 'absent', reason: 'The agent does not know the task.' },
      'The agent does not say how the task stands. The agent does not know the task.',
    ],
  ] as const)('%j', (subject, words) => {
    expect(sentence(subject)).toBe(words)
  })
})
