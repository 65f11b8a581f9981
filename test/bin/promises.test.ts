/** What a whole console at work, a process of its own, must not make dearer for everything else in it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startAgent, startConsole } from '../bench/commands.ts'
import { Hands } from '../bench/hands.ts'

test('a console that accepts, delivers and writes its audit trail has Node.js follow no promise', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-promises-'))
  const [agent, child] = [startAgent(), startConsole()]
  try {
    const { fast: cardUrl } = await agent.call('open', null)
    const { origin, agentId } = await child.call('open', { url: null, folder, cardUrl })
    const http = new Hands(origin, 1)
    await http.post({ path: `/api/agents/${agentId}/commands`, key: 'promises', body: '{"text":"Do it."}' }, 202)
    await expect.poll(() => child.call('unfinished', null)).toBe(0)
    http.close()
    expect(await child.call('followsPromises', null)).toBe(false)
  } finally {
    await child.end()
    await agent.end()
    rmSync(folder, { recursive: true, force: true })
  }
}, 60_000)
