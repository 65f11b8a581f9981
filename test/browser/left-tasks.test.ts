/**
 * What a person sees of followed tasks where no worker runs any more, in a real browser over a real server, a real agent and a worker
 * of its own: told where tasks are listed and where their agent is, and over as soon as another worker takes them up.
 */
import type { Browser, Page } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../persistence/database.ts'
import { expectClean } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

/** Holds the agent, and is no administrator. */
const clerk = { membershipId: '00000000-0000-7000-8000-0000000000cc', role: 'operator' } as const
/** Ten seconds must go by before anything is said of it. */
const patience = { timeout: 30_000 }

describe('tasks whose only worker has left', () => {
  let fresh: FreshDatabase
  let web: TestConsole
  let peer: RawPeer
  let browser: Browser
  let agentId: string
  let localId: string
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    web = await startConsole({
      database: fresh.db,
      system: { works: false },
      identify: (person, { headers }) => ({ ...person, ...(headers['x-who'] === 'clerk' ? clerk : {}) }),
    })
    peer = await startRawPeer({ card: { name: 'Ledger Agent' } })
    agentId = (await web.system.agents.register(web.viewer, peer.cardUrl)).id
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await web.close()
    await peer.close()
    await fresh.close()
  })

  /** A worker of its own, with its own connections. */
  async function work(): Promise<RunningSystem> {
    const db = await openDatabase(fresh.profile)
    const worker = await systemOn(db)
    return {
      ...worker,
      async close() {
        await worker.close()
        await db.close()
      },
    }
  }
  const open = (path: string): Promise<Page> => visit(browser, web.url + path)

  it('are told under the list of tasks, in the list of agents and on their agent’s page', async () => {
    const worker = await work()
    localId = (await worker.finished((await web.send(agentId, { text: 'hold' })).id)).result?.localId ?? ''
    const followed = async () => (await web.api.get(`/api/actors/subscription/${localId}`)).body
    await expect.poll(followed, patience).toMatchObject({ actor: { lease: { owner: worker.system.worker.owner } } })
    await worker.close()
    const page = await open('/tasks')
    await page.getByRole('link', { name: '1 task is not followed' }).waitFor(patience)
    await expectClean(page)
    await page.goto(`${web.url}/agents`)
    await page.getByText('Tasks not followed').waitFor(patience)
    await page.getByRole('link', { name: 'Ledger Agent' }).click()
    const troubles = page.getByRole('region', { name: 'What stands in its way' })
    await troubles.getByText('Following 1 task does not work').waitFor(patience)
    await troubles.getByText('What was to come next is due, and no worker has taken it up: none runs.').waitFor()
    await troubles.getByText('It was to be followed again').waitFor()
    expect(await troubles.getByText('The agent cannot be read').count()).toBe(0)
    await expectClean(page)
    const queues = troubles.getByRole('link', { name: 'See the queues' })
    expect(await queues.getAttribute('href')).toBe('/actors?show=system')
    await troubles.getByRole('link', { name: 'hold' }).click()
    await page.waitForURL(`**/tasks/${localId}`)
    const told = page.getByRole('region', { name: 'What stands in its way' })
    await told.getByText('No process works on its kind at the moment.').waitFor(patience)
    await told.getByRole('link', { name: 'See the queues' }).click()
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('No worker runs: what was accepted waits until one does').waitFor(patience)
  })

  it('are told to be due for want of a worker also to who may not see the queues', async () => {
    await web.db.pool.query(sql.unsafe`
      insert into access_grant (id, organization_id, agent_id, subject_type, subject_id, permission)
      values (gen_random_uuid(), ${web.viewer.organizationId}, ${agentId}, 'membership', ${clerk.membershipId}, 'read')`)
    const asClerk = async (path: string) => (await web.api.get(path, { 'x-who': 'clerk' })).body
    expect(await asClerk(`/api/actors/subscription/${localId}`)).toMatchObject({ wait: null, untaken: 'nobody' })
    expect(await asClerk(`/api/agents/${agentId}/troubles`)).toMatchObject({ unfollowed: { untaken: 'nobody' } })
  })

  it('are told no more once a worker follows them', async () => {
    const page = await open('/tasks')
    await page.getByRole('link', { name: '1 task is not followed' }).waitFor(patience)
    const worker = await work()
    await expect.poll(() => page.getByRole('link', { name: '1 task is not followed' }).count(), patience).toBe(0)
    await page.goto(`${web.url}/agents/${agentId}`)
    await page.getByText('Card as received').waitFor()
    expect(await page.getByText('Following 1 task does not work').count()).toBe(0)
    await worker.close()
  })
})
