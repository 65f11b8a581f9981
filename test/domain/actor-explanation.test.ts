/** Every state of every durable machine explains itself, and what a machine marks for a person is told as needing one. */
import { describe, expect, it } from 'vitest'
import { evidenceSentence, type CommandEvidence } from '../../domain/evidence.ts'
import { liveLeaves, activeNodes, pathsOf, spaced, whatCanHappen, type StateValue } from '../../domain/chart.ts'
import { commandErrors } from '../../domain/command.ts'
import { refusals } from '../../domain/refusal.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import { explainActor, hasWords } from '../../domain/actor-explanation.ts'
import type { Seen } from '../../domain/seen-actor.ts'
import { leaseGraceMs, stuckAfterMs } from '../../domain/patience.ts'
import { answeredError, answeredStatus, lostAnswers, shownCause } from '../../domain/lost-answer.ts'
import { eventWords, guardWords } from '../../domain/next-words.ts'
import { chartOf } from '../../machines/chart.ts'
import { actorIn, at, nowMs, seen } from './seen-actors.ts'
import { durableMachines, shortestPaths } from '../support/machine-events.ts'

describe.each(durableMachines.map(({ machine, events }) => ({ name: machine.id, machine, events })))(
  'the $name machine',
  ({ name, machine, events }) => {
    const chart = chartOf(machine)
    const states = shortestPaths(machine, events).map(({ state }) => ({
      value: state.value as StateValue,
      context: state.context as Record<string, unknown>,
    }))

    it('has words for every state', () => {
      const paths = states.flatMap(({ value }) => pathsOf(value))
      expect(paths.filter((path) => !hasWords(name, path))).toEqual([])
    })

    it('is told to need a person exactly where the machine says so', () => {
      for (const { value } of states) {
        const marked = liveLeaves(activeNodes(chart, value)).some(({ tags }) => tags.includes('attention'))
        const told = explainActor(seen(actorIn(name, value)), nowMs).some(({ tone }) => tone !== 'quiet')
        expect([value, told]).toEqual([value, marked])
      }
    })

    it('says what was stored and what a person can do, in whole sentences', () => {
      for (const { value, context } of states)
        for (const { title, sentences } of explainActor(seen(actorIn(name, value, { context })), nowMs)) {
          expect(title).not.toBe('')
          expect(sentences.length).toBeGreaterThan(0)
          for (const sentence of sentences) expect(sentence).toMatch(/^[“"A-Z0-9].*[.!?]$/s)
        }
    })

    it('tells every event that it answers in words of ours', () => {
      for (const { value } of states)
        for (const { event } of whatCanHappen(chart, value))
          expect(eventWords(event)).not.toMatch(/xstate|undefined|"|[a-z][A-Z]/)
    })

    it('tells every condition in words of ours, and not by its name', () => {
      for (const { value } of states)
        for (const { guard } of whatCanHappen(chart, value))
          if (guard !== undefined) expect([guard, guardWords(guard)]).not.toEqual([guard, spaced(guard)])
    })
  },
)

describe('an actor of a kind that this build does not know', () => {
  it('is told by its machine’s own names', () => {
    const [told] = explainActor(seen(actorIn('embargo', { open: 'comingSoon' })), nowMs)
    expect(told).toMatchObject({ tone: 'warn', title: 'open, coming soon' })
    expect(told?.sentences.join(' ')).toContain('No process of this release can move it')
    expect(eventWords('liftIt')).toBe('lift it')
    expect(eventWords('xstate.done.actor.lookUp')).toBe('its work "look up" ends')
  })
})

describe('work that nobody does', () => {
  const work = { id: 'deliver', startedAt: at(-60_000) }

  it('is given a moment after its lease ran out, and then told with its holder and its times', () => {
    const lease = { owner: 'host/12/ab', until: at(-leaseGraceMs) }
    const told = (more: number) =>
      explainActor(seen(actorIn('command', 'dispatching', { work, lease })), nowMs + more).find(
        ({ title }) => title === 'Its worker is silent',
      )
    expect(told(0)).toBeUndefined()
    expect(told(1)).toMatchObject({
      tone: 'warn',
      sentences: [
        expect.stringContaining('host/12/ab held "deliver"'),
        expect.stringContaining('takes over as soon as it has a place for it'),
        expect.stringContaining('nothing is sent again'),
      ],
      known: [
        { words: '"deliver" was begun', at: work.startedAt },
        { words: 'The lease ran out', at: lease.until },
      ],
    })
  })

  it('is said to wait for a place, where who is there has all taken: once, with who had it', () => {
    const lease = { owner: 'host/12/ab', until: at(-60_000) }
    const wait = { dueAt: lease.until, ahead: 3, places: 8, perAgent: 4, requestSince: null }
    const taken = [{ owner: 'a/1', taken: 8, ofLane: 2 }]
    const following = actorIn('subscription', 'following', { work: { ...work, id: 'follow' }, lease })
    const told = explainActor(seen(following, { wait: { ...wait, taken } }), nowMs)
    expect(told.map(({ title }) => title)).toEqual(['Its worker is silent'])
    expect(told[0]?.sentences.join(' ')).toContain(
      'held "follow" and stopped renewing its lease. 8 of 8 places are taken by a/1',
    )
    expect(told[0]?.sentences.join(' ')).toContain('3 of its kind have waited longer: those go first')
    expect(told[0]?.sentences.join(' ')).not.toContain('no worker runs')
    const nobody = explainActor(seen(following, { wait: { ...wait, taken: [] } }), nowMs)
    expect(nobody[0]?.sentences.join(' ')).toContain('No process works on its kind at the moment.')
    const slow = explainActor(seen(following, { wait: { ...wait, taken: [], ahead: 0, working: 2 } }), nowMs)
    expect(slow[0]?.sentences.join(' ')).toContain(
      '2 processes work, with places for it, and none has taken it up. Each asks for what is due several times a second: where it stays so, the database is slow, or a loop is down. It begins when one of them has.',
    )
  })

  it.each([
    ['nobody works', [], 'No process works on its kind at the moment.', 'Waits for a worker'],
    [
      'all places',
      [{ owner: 'a/1', taken: 8, ofLane: 2 }],
      '8 of 8 places are taken by a/1, 2 of them for the same agent.',
      'Waits for a place',
    ],
    [
      'all of its agent',
      [{ owner: 'a/1', taken: 5, ofLane: 4 }],
      '4 of them for the same agent, which may have no more.',
      'Waits for a place',
    ],
    [
      'all of its agent while others take some',
      [{ owner: 'a/1', taken: 5, ofLane: 2 }],
      '5 of 8 places are taken by a/1, 2 of them for the same agent, which may have no more at the moment. It begins as soon as fewer are taken.',
      'Waits for a place',
    ],
    [
      'room elsewhere',
      [
        { owner: 'a/1', taken: 8, ofLane: 0 },
        { owner: 'b/2', taken: 1, ofLane: 0 },
      ],
      'It begins within a second.',
      'Waits for a worker',
    ],
  ] as const)('says whose places it waits for: %s', (_, taken, sentence, title) => {
    const wait = { dueAt: at(-1), ahead: 0, taken: [...taken], places: 8, perAgent: 4, requestSince: null }
    const [told] = explainActor(seen(actorIn('subscription', 'following', { work }), { wait }), nowMs)
    // Not late yet, so what it waits in is as quiet as where it waits.
    expect(told).toMatchObject({ tone: 'quiet', title, known: [{ words: 'Due', at: wait.dueAt }] })
    expect(told?.sentences.join(' ')).toContain(sentence)
    const [late] = explainActor(seen(actorIn('subscription', 'following', { work }), { wait }), nowMs + stuckAfterMs)
    expect(late).toMatchObject({ tone: 'warn', title, remedies: ['see-queues'] })
  })

  it.each([
    ['nobody works', []],
    ['all places are taken', [{ owner: 'a/1', taken: 8, ofLane: 2 }]],
    ['all that its agent may have now are taken', [{ owner: 'a/1', taken: 5, ofLane: 2 }]],
    ['there is room', [{ owner: 'a/1', taken: 1, ofLane: 0 }]],
  ] as const)('promises no moment where others have waited longer: %s', (_, taken) => {
    const words = (ahead: number) => {
      const wait = { dueAt: at(-1), ahead, taken: [...taken], places: 8, perAgent: 4, requestSince: null }
      return explainActor(seen(actorIn('subscription', 'following', { work }), { wait }), nowMs)[0]?.sentences.join(' ')
    }
    expect(words(0)).toMatch(/within a second|as soon as/)
    for (const ahead of [1, 240]) expect(words(ahead)).not.toMatch(/within a second|as soon as|\.\.|null/)
    expect(words(240)).toMatch(
      /\. 240 of its kind have waited longer: those go first where a place is free for them\.$/,
    )
    expect(words(1)).toMatch(/\. 1 of its kind has waited longer: that one goes first where a place is free for it\.$/)
  })
})

it('says of what failed last that the places for such are taken', () => {
  const wait = { dueAt: at(-1), ahead: 0, places: 2, perAgent: 1, perDoubted: 1, requestSince: null }
  const told = (ofDoubted: number) => {
    const taken = [{ owner: 'a/1', taken: 1, ofLane: 0, ofDoubted }]
    const actor = actorIn('reconciliation', 'checking', {
      work: { id: 'check', startedAt: null },
      context: { failures: 3, reason: 'HTTP 503' },
    })
    return explainActor(seen(actor, { wait: { ...wait, taken } }), nowMs)[0]
  }
  expect(told(1)).toMatchObject({ title: 'Waits for a place' })
  expect(told(1)?.sentences.join(' ')).toContain(
    '1 of 2 places are taken by a/1, 1 of them where the last try failed or was slow, too: those may have no more. It begins as soon as one is free.',
  )
  expect(told(0)).toMatchObject({ title: 'Waits for a worker' })
})

describe('a following that fails and waits for a place', () => {
  it.each(['following', { polling: 'reading' }])('is not said to be tried now, in %j', (value) => {
    const wait = { dueAt: at(-60_000), ahead: 0, taken: [], places: 8, perAgent: 4, requestSince: null }
    const actor = actorIn('subscription', value, { context: { failures: 3, reason: 'HTTP 503' } })
    const words = (more: Partial<Seen>) => explainActor(seen(actor, more), nowMs).flatMap(({ sentences }) => sentences)
    expect(words({})).toContain('It is tried again right now.')
    expect(words({ wait }).join(' ')).not.toContain('right now')
    expect(words({ wait })).toContain('It is due to be tried again, and has not been begun.')
  })
})

describe('a reconciliation that backs off', () => {
  it('is weather once and a trouble from the second failure on, with its reason', () => {
    const told = (failures: number) =>
      explainActor(
        seen(
          actorIn('reconciliation', 'backingOff', { context: { failures, reason: 'Agent network request failed' } }),
        ),
        nowMs,
      )[0]
    expect(told(1)?.tone).toBe('quiet')
    expect(told(2)).toMatchObject({ tone: 'warn', remedies: ['open-agent'] })
    expect(told(2)?.sentences).toContain('Reason: Agent network request failed.')
  })
})

it.each([
  [{ listUnread: 0 }, null],
  [{ listUnread: 1 }, 'One entry of its list could not be read, and was passed over.'],
  [{ listUnread: 3 }, '3 entries of its list could not be read, and were passed over.'],
  [{ listUnread: 3, listReason: 'HTTP 503' }, 'Its list could not be read: HTTP 503.'],
])('says of a list whose entries cannot all be read how many were passed over, %j', (context, sentence) => {
  const told = explainActor(seen(actorIn('reconciliation', 'pausing', { context })), nowMs)
  const words = told.flatMap(({ sentences }) => sentences).filter((words) => words.includes('list'))
  expect(words).toEqual(sentence === null ? [] : [sentence])
})

describe('a command', () => {
  const evidence = (outcome: CommandEvidence['outcome']): CommandEvidence => ({
    outcome,
    looks: 1,
    lookedAt: at(-10),
    nextLookAt: outcome === 'found' ? null : at(50_000),
    isWhole: true,
    taskId: 'remote-1',
    localId: null,
    localState: null,
    taskState: 'TASK_STATE_WORKING',
    messageId: 'm-1',
    sentence: evidenceSentence({
      action: 'send',
      outcome,
      isWhole: true,
      taskId: 'remote-1',
      taskState: 'TASK_STATE_WORKING',
      localState: null,
      reason: null,
    }),
  })
  const delivery = {
    action: 'send',
    localId: null,
    acceptedAt: at(-90_000),
    leftAt: at(-80_000),
    endedAt: at(-20_000),
    ended: 'interrupted',
    cause: null,
  } as const

  it('says what came instead of an answer', () => {
    const uncertain = { status: 'uncertain', error: null, action: 'send' } as const
    const record = { ...delivery, ended: 'unknown', cause: 'Agent response exceeds the safety limit.' } as const
    const words = explainCommand(uncertain, nowMs, record)?.known.map((each) => each.words)
    expect(words).toContain('What came instead: Agent response exceeds the safety limit')
  })

  it('does not call an answer unreadable that was read, and tells its number and none of its words', () => {
    const doubt = { status: 'uncertain', error: null, action: 'send' } as const
    const told = (cause: string) =>
      explainCommand(doubt, nowMs, { ...delivery, ended: 'unknown', cause: shownCause(cause) })
    for (const ours of [answeredStatus(503), answeredError(-32603)]) {
      const words = JSON.stringify(told(`${ours} token sk-4711 expired`))
      expect(words).toContain(`What came instead: ${ours.replace(/\.$/, '')}`)
      expect(words).not.toMatch(/sk-4711|can be read/)
    }
    // As logs held it before.
    expect(shownCause('token sk-4711 expired')).toBe(lostAnswers.undecided)
    expect(shownCause(lostAnswers.reset)).toBe(lostAnswers.reset)
  })

  it('says nothing where nothing went wrong', () => {
    for (const status of ['pending', 'dispatching', 'succeeded'] as const)
      expect(explainCommand({ status, error: null, action: 'send' }, nowMs)).toBeUndefined()
  })

  it('is never called failed while its outcome is unknown', () => {
    for (const error of [commandErrors.uncertain, commandErrors.leaseExpired, null])
      expect(JSON.stringify(explainCommand({ status: 'uncertain', error, action: 'send' }, nowMs))).not.toMatch(/fail/i)
  })

  it('tells when the request left, how that ended and what was looked for since, oldest first', () => {
    const told = explainCommand(
      { status: 'uncertain', error: commandErrors.leaseExpired, action: 'send' },
      nowMs,
      delivery,
      evidence('absent'),
    )
    expect(told?.sentences[0]).toContain('the process that sent it ended, or stood still')
    expect(told?.known).toEqual([
      { words: 'Accepted and saved', at: delivery.acceptedAt },
      { words: 'From here on the request may have left', at: delivery.leftAt },
      { words: expect.stringContaining('stopped renewing its lease'), at: delivery.endedAt },
      { words: expect.stringContaining('was not found at the agent'), at: at(-10) },
      { words: 'It is looked for again', at: at(50_000) },
    ])
    expect(told?.remedies).toContain('send-again')
  })

  it('sends nobody to a task that is not there, and says by what to ask instead', () => {
    const doubt = { status: 'uncertain', error: null, action: 'send' } as const
    const advice = (localId: string | null, seen: CommandEvidence | null = null) =>
      explainCommand(doubt, nowMs, { ...delivery, localId }, seen)?.sentences.join(' ')
    expect(advice(null)).not.toContain('Look at the task')
    expect(advice(null)).toContain('ask whoever runs the agent, by the message id')
    expect(advice('00000000-0000-7000-8000-000000000002')).toContain('Look at the task')
    expect(advice(null, evidence('found'))).toContain('by the message id')
    // Whoever asks without a record may know it all the same: a list of sends, the composer of a new task.
    expect(explainCommand({ ...doubt, localId: null }, nowMs)?.sentences).toEqual(
      explainCommand(doubt, nowMs, delivery)?.sentences,
    )
    expect(explainCommand(doubt, nowMs)?.sentences.join(' ')).toContain('Look at the task')
  })

  it('says that it arrived once it was found, and that sending again says it twice', () => {
    const told = explainCommand(
      { status: 'uncertain', error: null, action: 'send' },
      nowMs,
      delivery,
      evidence('found'),
    )
    expect(told).toMatchObject({ tone: 'warn', title: 'It reached the agent' })
    expect(told?.sentences.join(' ')).toContain(
      'ask whoever runs the agent, by the message id, to see what became of it: sending it again would say it twice',
    )
    const known = { ...evidence('found'), localId: '00000000-0000-7000-8000-000000000002' }
    const here = explainCommand({ status: 'uncertain', error: null, action: 'send' }, nowMs, delivery, known)
    expect(here?.sentences.join(' ')).toContain('Look at the task to see')
    expect(told?.remedies[0]).toBe('open-task')
  })

  it('says of a found task how it stands here now, or that nobody looks again', () => {
    const words = (localState: string | null) => {
      const localId = localState === null ? null : '00000000-0000-7000-8000-000000000002'
      const told = { ...evidence('found'), localId, localState }
      return explainCommand({ status: 'uncertain', error: null, action: 'send' }, nowMs, delivery, told)?.known.at(-1)
    }
    expect(words('TASK_STATE_COMPLETED')).toEqual({ words: 'The task is followed here: completed now', at: null })
    expect(words(null)?.words).toContain('nobody looks again')
  })

  it('says how long the agent has to answer, while it has', () => {
    const work = { id: 'deliver', startedAt: at(-10_000) }
    const [told] = explainActor(seen(actorIn('command', 'dispatching', { work })), nowMs)
    expect(told?.sentences.join(' ')).toContain('The agent has 60 s to answer')
    expect(told?.known).toEqual([{ words: 'It has time until about', at: at(50_000) }])
  })

  it('says of work that nobody has taken up that it waits, also to those who are not told for whose places', () => {
    for (const [kind, value, id] of [
      ['subscription', 'following', 'follow'],
      ['command', { pending: 'discovering' }, 'discover'],
    ] as const) {
      const actor = actorIn(kind, value, { work: { id, startedAt: null }, updatedAt: at(-7_200_000) })
      const [told, ...others] = explainActor(seen(actor), nowMs)
      expect([told?.tone, told?.title, others]).toEqual(['warn', 'Waits for a worker or a place', []])
      expect(told?.known).toEqual([{ words: 'As it is since', at: at(-7_200_000) }])
      // How many are before it is not theirs to know.
      expect(told?.sentences[0]).toMatch(/It begins when its turn comes\.$/)
    }
  })

  it('explains a failure, and shows a sentence that it does not know as it is', () => {
    const told = (error: string | null) => explainCommand({ status: 'failed', error, action: 'send' }, nowMs)
    expect(told(commandErrors.discovery)?.sentences[0]).toContain('in three tries')
    expect(told('The agent said no.')?.sentences[0]).toBe('The agent said no.')
    expect(told(null)?.title).toBe('Not delivered')
  })

  it('says of an answer for another skill that the agent has the message, and does not offer to send it again', () => {
    const error = refusals['skill.crossed']
    const told = explainCommand({ status: 'failed', error, action: 'send' }, nowMs)
    expect(told?.sentences[0]).toContain('The agent took the message')
    expect(told?.sentences[1]).toContain('It has probably done the work')
    expect(told?.remedies).toEqual(['open-agent'])
  })

  it('never offers to send a cancel again by its words', () => {
    for (const status of ['failed', 'uncertain'] as const)
      expect(explainCommand({ status, error: null, action: 'cancelTask' }, nowMs)?.remedies).not.toContain('send-again')
  })
})
