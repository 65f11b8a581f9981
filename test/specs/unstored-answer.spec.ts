/** An agent that answered while its files could not be stored here: whoever sent it is told that, and nothing is sent again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ActorAnswer } from '../../domain/actor.ts'
import { isFinished } from '../../domain/command.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import { unstoredAnswer } from '../../domain/lost-answer.ts'
import { startConsole } from '../support/console.ts'
import { startRawPeer } from '../support/peers/raw.ts'

/** A full disk is waited for 43 s. */
const patience = { timeout: 75_000, interval: 250 }

test(
  'an answer whose files cannot be stored leaves the send uncertain, and says what happened',
  { timeout: 90_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-unstored-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const blocked = join(folder, 'artifacts')
    writeFileSync(blocked, 'a file stands where the directory should be')
    const house = await startConsole({
      database: 'postgresql',
      uiDirectory: null,
      system: { artifactDirectory: blocked },
    })
    onTestFinished(() => house.close())
    const peer = await startRawPeer()
    onTestFinished(() => peer.close())
    const { id: agentId } = await house.system.agents.register(house.viewer, peer.cardUrl)

    // The agent's answer is its task, with what was said in it.
    const parts = [{ raw: Buffer.from('a,b\n1,2\n').toString('base64'), filename: 'sheet.csv' }]
    const sent = await house.send(agentId, { text: 'ask', parts })
    const find = () => house.system.commands.find(house.viewer, sent.id)
    // Room that is made now would save the answer, so whoever reads the log is told now.
    const waits = 'an answer waits: its files cannot be stored'
    await expect.poll(() => house.lines.map(({ message }) => message)).toContain(waits)
    expect((await find()).status).toBe('dispatching')
    await expect.poll(async () => isFinished((await find()).status), patience).toBe(true)
    const ended = await find()
    expect(ended.status).toBe('uncertain')
    const { delivery } = ActorAnswer.parse((await house.api.get(`/api/actors/command/${sent.id}`)).body)
    expect(delivery).toMatchObject({ ended: 'unknown', cause: unstoredAnswer('ENOTDIR') })
    const told = explainCommand(ended, Date.now(), delivery)
    expect(told?.sentences[0]).toBe(
      'The agent answered the message, and what it said is lost: the console could not store its files. Nothing is sent again automatically.',
    )
    expect(told?.known.map(({ words }) => words)).toEqual([
      'Accepted and saved',
      'From here on the request may have left',
      'The agent answered, and the console could not store the files of what was said (ENOTDIR)',
    ])
    expect(peer.receiptsOf(sent.messageId)).toBe(1)
  },
)
