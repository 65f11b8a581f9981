/** An agent that answers a new message with a task that had finished: the task stays as it was, and whoever sent it is told. */
import { expect, it, onTestFinished } from 'vitest'
import { answeredByFinished } from '../../actors/observe.ts'
import { explainActor } from '../../domain/actor-explanation.ts'
import { ActorAnswer } from '../../domain/actor.ts'
import { startConsole } from '../support/console.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'

const headers = { 'content-type': 'application/json' }

it.each(eitherDatabase)('a new message that is answered with a finished task says so, on %s', async (database) => {
  const peer = await startRawPeer({ binding: 'HTTP+JSON' })
  onTestFinished(() => peer.close())
  const running = await startConsole({ database, uiDirectory: null })
  onTestFinished(() => running.close())
  const agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  const sent = async (text: string, taskId?: string) =>
    running.finished((await running.send(agentId, taskId === undefined ? { text } : { text, taskId })).id)
  const explained = async (id: string) =>
    explainActor(ActorAnswer.parse((await running.api.get(`/api/actors/command/${id}`)).body), Date.now())[0]?.sentences

  const first = await sent('hello')
  const { localId = '', taskId } = first.result ?? {}
  await running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
  const task = { id: taskId, status: { state: 'TASK_STATE_WORKING' } }
  peer.script.fault('SendMessage', { fault: 'body', headers, body: JSON.stringify({ task }) }, Infinity)
  const { id } = await sent('begin something new')
  const { body } = await running.api.get(`/api/commands/${id}`)
  expect(body).toMatchObject({ command: { status: 'succeeded', result: { localId }, error: answeredByFinished } })
  expect(await explained(id)).toContain(answeredByFinished)
  expect(await running.task(localId, () => true)).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
  // What was said to the very task that answers is no surprise, nor what began it.
  for (const other of [first, await sent('more', taskId ?? '')]) {
    expect(await running.system.commands.find(running.viewer, other.id)).toMatchObject({ error: null })
    expect(await explained(other.id)).not.toContain(answeredByFinished)
  }
})
