/**
 * An agent whose streams begin with what comes next: what it says between two of them is found beside the second, while that goes on
 * [console-http-api.md: "Background loops", "so missed events heal"], and no word stands there twice.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { lookEnded } from '../../actors/diagnostics.ts'
import { rebuildTask } from '../../actors/rebuild.ts'
import { eitherDatabase } from '../support/databases.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { startPatientAgent, type PatientOptions } from './patient-agent.ts'

const patience = { timeout: 20_000, interval: 20 }

describe.each(eitherDatabase)('beside a stream on %s', (kind) => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem(kind)
  })
  afterAll(() => running.close())

  /** An agent of one artifact that has told `one`, then `two` to nobody, and is followed again. */
  async function behindGap(name: string, options: PatientOptions = {}) {
    const agent = await startPatientAgent(name, { begins: 'with what comes', ...options })
    onTestFinished(() => agent.close())
    const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'Begin.' })).id)
    const localId = result?.localId ?? ''
    const texts = async (): Promise<unknown[]> => {
      const { artifacts } = await running.task(localId, () => true)
      return artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))
    }
    const made: string[] = []
    /** To whoever asks, and whoever listens. */
    const tell = (word: string): void => {
      made.push(word)
      agent.say('WORKING', { made, isSilent: true })
      agent.tellChunk(word, made.length > 1)
    }
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 1 })
    tell('one')
    await expect.poll(texts).toEqual(['one'])
    const looks = agent.looks()
    agent.endStreams()
    // The look at its end, which sees nothing of this.
    await expect.poll(agent.looks, { interval: 5 }).toBe(looks + 1)
    made.push('two')
    agent.say('WORKING', { made, isSilent: true })
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })
    return { agent, localId, texts, tell, made }
  }
  /** How the looks of a test ended. */
  function looksEnded(): ReadonlySet<string> {
    const ends = new Set<string>()
    onTestFinished(lookEnded.subscribe(({ end }) => ends.add(end)))
    return ends
  }
  /** Says a word now and then, as long as it takes until `seen` holds; at most a hundred. */
  async function talk(
    tell: (word: string) => void,
    seen: () => Promise<unknown[]>,
    until: (texts: unknown[]) => boolean,
  ) {
    let told = 0
    const saying = setInterval(() => told < 100 && tell(`word ${(told += 1)}`), 100)
    await expect
      .poll(async () => until(await seen()), patience)
      .toBe(true)
      .finally(() => clearInterval(saying))
  }

  it('that is busy, what was missed is found, and the stream goes on', async () => {
    const { agent, localId, texts, tell, made } = await behindGap('busy')
    const ends = looksEnded()
    await talk(tell, texts, (seen) => seen.includes('two'))
    await expect.poll(texts).toEqual(made)
    tell('after')
    await expect.poll(texts).toEqual(made)
    expect(agent.streams()).toEqual({ held: 1, opened: 2 })
    expect([...ends]).toEqual(['seen'])
    const { db, viewer } = running
    expect(await rebuildTask(db.pool, viewer.organizationId, localId)).toMatchObject({ repaired: false })
  })

  it('that lags behind what its agent shows, no word is told twice', async () => {
    const { agent, texts, made } = await behindGap('ahead')
    let told = 0
    /** Shown three words before it is told. */
    const late: string[] = []
    const tell = (word: string): void => {
      made.push(word)
      agent.say('WORKING', { made, isSilent: true })
      late.push(word)
      if (late.length > 3) agent.tellChunk(late.shift() ?? '', (told += 1) > 0)
    }
    await talk(tell, texts, (seen) => seen.includes('two'))
    const seen = await texts()
    expect(seen).toEqual(made.slice(0, seen.length))
    for (const word of late) agent.tellChunk(word, true)
    await expect.poll(texts).toEqual(made)
    expect(agent.streams()).toEqual({ held: 1, opened: 2 })
  })

  it('of an agent that shows nothing, what it tells is not held back', async () => {
    const { agent, texts, tell, made } = await behindGap('shy', { isShown: false })
    const ends = looksEnded()
    await talk(tell, texts, (seen) => seen.length > 20)
    await expect.poll(texts).toEqual(made.filter((word) => word !== 'two'))
    expect([...ends]).toEqual(['unread'])
    expect(agent.streams()).toEqual({ held: 1, opened: 2 })
  })

  it('that begins with the task, nobody looks', async () => {
    const { agent, texts, tell, made } = await behindGap('whole', { begins: 'with the task' })
    await expect.poll(texts).toEqual(['one', 'two'])
    const looks = agent.looks()
    await talk(tell, texts, (seen) => seen.length > 20)
    await expect.poll(texts).toEqual(made)
    expect(agent.looks()).toBe(looks)
  })
})
