/** The judge is judged: a history in which everything is as promised, and one for every way in which a promise can break. */
import { describe, expect, it } from 'vitest'
import type { Books } from './books.ts'
import { violations, type Ask, type FinalCommand, type History } from './checker.ts'

const at = 1_000_000
const chain: Books['chains'][number] = { organizationId: 'o1', rows: 2, links: 2, fault: null }
const books: Books = {
  log: [
    { kind: 'command', actorId: 'c1', revision: 1, value: { pending: 'discovering' }, at },
    { kind: 'command', actorId: 'c1', revision: 2, value: 'dispatching', at: at + 10 },
    { kind: 'command', actorId: 'c1', revision: 3, value: 'succeeded', at: at + 20 },
  ],
  versions: [
    { taskId: 't1', version: 1 },
    { taskId: 't1', version: 3 },
  ],
  events: [0, 1, 2].map((position) => ({ taskId: 't1', position, source: 'stream' })),
  tasks: [
    {
      id: 't1',
      remoteId: 'task-m1',
      cardUrl: 'http://agent/card.json',
      state: 'TASK_STATE_COMPLETED',
      version: 3,
      text: 'Result of m1.',
    },
  ],
  audits: [{ subjectId: 'c1' }],
  commands: [{ id: 'c1', messageId: 'm1', status: 'succeeded' }],
  chains: [chain],
  astray: [],
}
const ask = (attempts: Ask['attempts'] = [{ sentAt: at, status: 202, commandId: 'c1' }]): Ask => ({
  key: 'k1',
  messageId: 'm1',
  attempts,
})
const final: FinalCommand = { id: 'c1', messageId: 'm1', status: 'succeeded', answer: { id: 'task-m1', text: null } }
const receipt = { messageId: 'm1', at: at + 15, dialect: '1.0-rest', answer: 'task-m1' } as const
const kept: History = {
  asks: [ask()],
  receipts: [receipt],
  agentOrigin: 'http://agent',
  agentTasks: [
    { id: 'task-m1', messageId: 'm1', dialect: '1.0-rest', state: 'completed', chunks: ['Result of ', 'm1.'] },
  ],
  finals: new Map([['c1', final]]),
  seen: [
    { commandId: 'c1', at: at + 5, status: 'pending' },
    { commandId: 'c1', at: at + 30, status: 'succeeded' },
  ],
  books,
  faults: [],
  otherStatuses: [200, 404, 503],
  processes: [{ name: 'console 1', output: '', ended: '0', expected: '0' }],
  memory: [{ name: 'console 1', beforeBytes: 100, afterBytes: 119 }],
}

/** The same command, ended in doubt `tookMs` after its dispatch. */
const inDoubt = (tookMs: number, change: Partial<History> = {}): History => ({
  ...kept,
  agentTasks: [],
  finals: new Map([['c1', { ...final, status: 'uncertain', answer: null }]]),
  seen: [],
  books: {
    ...books,
    tasks: [],
    versions: [],
    events: [],
    log: books.log.map((entry) =>
      entry.revision === 3 ? { ...entry, value: 'uncertain', at: at + 10 + tookMs } : entry,
    ),
  },
  ...change,
})
/** The same command, refused or never delivered. */
const failing = (change: Partial<History> = {}): History => ({
  ...inDoubt(1, { finals: new Map([['c1', { ...final, status: 'failed', answer: null }]]) }),
  books: {
    ...inDoubt(1).books,
    log: books.log.map((entry) => (entry.revision === 3 ? { ...entry, value: 'failed' } : entry)),
  },
  ...change,
})
/** The same command, as the cancel of a task that the agent was told of so many times. */
const canceling = (times: number, answer = 'task-m1'): History => ({
  ...kept,
  asks: [{ ...ask(), messageId: 'cancel-task-m1' }],
  receipts: Array.from({ length: times }, () => ({ ...receipt, messageId: 'cancel-task-m1', answer })),
  agentTasks: [{ id: 'task-m1', messageId: 'm1', dialect: '1.0-rest', state: 'canceled', chunks: ['Result of m1.'] }],
  finals: new Map([['c1', { ...final, messageId: 'cancel-task-m1' }]]),
  books: { ...books, tasks: books.tasks.map((task) => ({ ...task, state: 'TASK_STATE_CANCELED' })) },
})
const kill = { what: 'kill -9', from: at + 12, to: at + 14 }

describe('a history that is as promised', () => {
  const histories: Record<string, History> = {
    'one delivery, answered and followed to its end': kept,
    'in doubt, while something was broken': inDoubt(60_000, { faults: [kill] }),
    'in doubt, and the agent never had it': inDoubt(60_000, { faults: [kill], receipts: [] }),
    'in doubt, while the agent has a task that nobody knows here': inDoubt(60_000, {
      faults: [kill],
      agentTasks: kept.agentTasks,
    }),
    'a task that was canceled': canceling(1),
    'failed, and the agent wrote down that it refused': failing({ receipts: [{ ...receipt, answer: 'refused' }] }),
    'failed, and nothing reached the agent': failing({ receipts: [] }),
    'a task of an agent that keeps no book': {
      ...kept,
      books: { ...books, tasks: books.tasks.map((task) => ({ ...task, remoteId: 'x', cardUrl: 'http://other/card' })) },
      agentTasks: [],
    },
    'asked three times under one key': {
      ...kept,
      asks: [
        ask([
          { sentAt: at, status: null, commandId: null },
          { sentAt: at, status: 503, commandId: null },
          { sentAt: at, status: 202, commandId: 'c1' },
        ]),
      ],
    },
  }
  it.each(Object.entries(histories))('%s', (_, history) => {
    expect(violations(history)).toEqual([])
  })
})

describe('a history that breaks a promise', () => {
  const log = (revision: number, value: unknown) => ({ kind: 'command', actorId: 'c1', revision, value, at })
  const histories: Record<string, [promise: string, history: History]> = {
    'accepted and not to be read': ['I1', { ...kept, finals: new Map() }],
    'accepted and never ended': ['I1', { ...kept, finals: new Map([['c1', { ...final, status: 'dispatching' }]]) }],
    'a task that its events do not make': ['I7', { ...kept, books: { ...books, astray: ['task t1 is another.'] } }],
    'delivered twice': ['I2', { ...kept, receipts: [receipt, { ...receipt, at: at + 16 }] }],
    'delivered twice, in doubt': ['I2', inDoubt(1, { faults: [kill], receipts: [receipt, receipt] })],
    'canceled twice': ['I2', canceling(2)],
    'a cancel that succeeded and never came': ['I3', canceling(0)],
    'a cancel that succeeded and was refused': ['I3', canceling(1, 'refused')],
    'delivered and never asked for': ['I2', { ...kept, receipts: [receipt, { ...receipt, messageId: 'm2' }] }],
    'delivered and never accepted': ['I2', { ...kept, asks: [ask([{ sentAt: at, status: null, commandId: null }])] }],
    'succeeded without a receipt': ['I3', { ...kept, receipts: [] }],
    "succeeded with another's answer": [
      'I3',
      { ...kept, finals: new Map([['c1', { ...final, answer: { id: 'task-m2', text: null } }]]) },
    ],
    'succeeded with other words': [
      'I3',
      {
        ...kept,
        receipts: [{ ...receipt, answer: 'answer-m1' }],
        finals: new Map([['c1', { ...final, answer: { id: 'answer-m1', text: 'Answer to m2.' } }]]),
      },
    ],
    'failed, and the agent did it': ['I3', failing()],
    'a command that holds another message': [
      'I3',
      { ...kept, finals: new Map([['c1', { ...final, messageId: 'm2' }]]) },
    ],
    'in doubt for no reason': ['I4', inDoubt(100)],
    'in doubt, and broken only before': ['I4', inDoubt(100, { faults: [{ ...kill, from: at, to: at + 9 }] })],
    'in doubt, and broken only after': ['I4', inDoubt(100, { faults: [{ ...kill, from: at + 111, to: at + 112 }] })],
    // As when a lease runs out that nothing had touched: the fault before it explains nothing, however long ago it was.
    'dispatched after the fault was over, and in doubt a lease later': [
      'I4',
      inDoubt(60_000, { faults: [{ ...kill, from: at - 2_000, to: at }] }),
    ],
    'a status that was seen to go back': [
      'I5',
      {
        ...kept,
        seen: [
          { commandId: 'c1', at: at + 30, status: 'succeeded' },
          { commandId: 'c1', at: at + 31, status: 'dispatching' },
        ],
      },
    ],
    'a verdict that was seen to change': ['I5', { ...kept, seen: [{ commandId: 'c1', at, status: 'uncertain' }] }],
    'a log that goes back': [
      'I5',
      {
        ...kept,
        books: { ...books, log: [log(1, 'dispatching'), log(2, { pending: 'waiting' }), log(3, 'succeeded')] },
      },
    ],
    'a log with a gap': ['I5', { ...kept, books: { ...books, log: [log(1, 'dispatching'), log(3, 'succeeded')] } }],
    'a log that lacks its beginning': ['I5', { ...kept, books: { ...books, log: [log(3, 'succeeded')] } }],
    'a log with an entry twice': [
      'I5',
      { ...kept, books: { ...books, log: [...books.log, { ...log(3, 'succeeded') }] } },
    ],
    'a log that ends otherwise than the command reads': [
      'I5',
      { ...kept, books: { ...books, log: books.log.slice(0, 2) } },
    ],
    'a task event that is missing': ['I5', { ...kept, books: { ...books, events: books.events.slice(0, 1) } }],
    'a task event in the middle that is missing': [
      'I5',
      { ...kept, books: { ...books, events: books.events.filter(({ position }) => position !== 1) } },
    ],
    'a version that was told after a later one': [
      'I5',
      { ...kept, books: { ...books, versions: books.versions.toReversed() } },
    ],
    'an acceptance without an audit row': ['I5', { ...kept, books: { ...books, audits: [] } }],
    'an audit row of a command that is not there': [
      'I5',
      { ...kept, books: { ...books, audits: [...books.audits, { subjectId: 'c2' }] } },
    ],
    'an audit chain with a gap': [
      'I5',
      { ...kept, books: { ...books, chains: [chain, { ...chain, fault: { kind: 'gap', number: 2 } }] } },
    ],
    'an audit row that was never linked': ['I5', { ...kept, books: { ...books, chains: [{ ...chain, rows: 3 }] } }],
    'a link of an audit row that is gone': ['I5', { ...kept, books: { ...books, chains: [{ ...chain, rows: 1 }] } }],
    'two commands for one key': [
      'I6',
      {
        ...kept,
        asks: [ask([...ask().attempts, { sentAt: at, status: 202, commandId: 'c2' }])],
      },
    ],
    'a key that gives nothing': ['I6', { ...kept, asks: [ask([{ sentAt: at, status: 503, commandId: null }])] }],
    'a task that is not as the agent has it': [
      'I7',
      { ...kept, books: { ...books, tasks: books.tasks.map((task) => ({ ...task, state: 'TASK_STATE_WORKING' })) } },
    ],
    'a task that no agent has': ['I7', { ...kept, agentTasks: [] }],
    'a task whose words are not the agent’s': [
      'I7',
      { ...kept, books: { ...books, tasks: books.tasks.map((task) => ({ ...task, text: 'Result of ' })) } },
    ],
    'a task that was answered and is not known': [
      'I7',
      { ...kept, books: { ...books, tasks: [], versions: [], events: [] } },
    ],
    'an answer of 500': ['I8', { ...kept, otherStatuses: [500] }],
    'a process that ended by itself': [
      'I8',
      { ...kept, processes: [{ name: 'console 1', output: '', ended: '1', expected: null }] },
    ],
    'a drain that ended with another code': [
      'I8',
      { ...kept, processes: [{ name: 'console 1', output: '', ended: '1', expected: '0' }] },
    ],
    'an unhandled rejection': [
      'I8',
      {
        ...kept,
        processes: [{ name: 'console 1', output: 'UnhandledPromiseRejection: x', ended: '0', expected: '0' }],
      },
    ],
    'memory that does not come back': [
      'I8',
      { ...kept, memory: [{ name: 'console 1', beforeBytes: 100, afterBytes: 121 }] },
    ],
  }
  it.each(Object.entries(histories))('%s', (_, [promise, history]) => {
    expect(violations(history).join('\n')).toContain(`${promise}: `)
  })
})
