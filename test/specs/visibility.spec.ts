/**
 * Every route's answer to every person of a drawn organization is what a model of the specification says, written apart from the
 * product (visibility-model.ts). A route that forgets to ask who is asking fails here, whichever it is.
 */
import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import fc from 'fast-check'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { skillRoutingUri } from '../../a2a/extensions/skill-routing.ts'
import type { Viewer } from '../../domain/access.ts'
import { listAgents, readHolding } from '../../persistence/agents.ts'
import { findCommand } from '../../persistence/commands.ts'
import { readEvidence } from '../../persistence/evidence.ts'
import { readEvents } from '../../persistence/stored-events.ts'
import { listTasks, listViewIds } from '../../persistence/task-views.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { crowd } from '../support/crowd.ts'
import { eitherDatabase } from '../support/databases.ts'
import { Model } from './visibility-model.ts'
import { write } from './visibility-rows.ts'
import { Asked, Visit } from './visibility-visit.ts'
import { plans, skillIds, worldOf, type Person, type World } from './visibility-world.ts'
import { readView } from '../support/views.ts'
import { sized } from '../support/pass.ts'

const seed = 20_261_122
const worlds = sized(1, 10)
/** Below HTTP, where one costs a tenth. */
const worldsBelow = sized(4, 60)
const patienceMs = sized(180_000, 1_800_000)

/** What no person asks for: the way in, and the door for agents. Everything else that the document knows is asked. */
const nobodys = ['GET /api/auth/callback', 'GET /api/auth/login', 'POST /api/webhooks/a2a/{registrationId}']
const Document = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })

const bytes = ['one', 'two', 'three'].map((text) => Buffer.from(text))
const digests = bytes.map((content) => createHash('sha256').update(content).digest('hex'))

const cardOf = (origin: string, routes: boolean) => ({
  name: 'Drawn agent',
  description: 'Has skills.',
  version: '1.0.0',
  supportedInterfaces: [{ url: `${origin}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: routes ? { extensions: [{ uri: skillRoutingUri('signalbox.example') }] } : {},
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: skillIds.map((id) => ({ id, name: id, description: id, tags: [id] })),
})

/** Serves cards, and nothing else: no send of these tests is delivered. */
async function serveCards(): Promise<{ readonly server: Server; readonly origin: string }> {
  const server = createServer((request, response) => {
    const routes = (request.url ?? '').startsWith('/routes/')
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(cardOf(origin, routes)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { server, origin }
}

const viewerOf = ({ organizationId }: World, { personId, membershipId, role, name }: Person): Viewer => ({
  organizationId,
  userId: personId,
  membershipId,
  role,
  displayName: name,
})

describe.each(eitherDatabase)('what people see on %s', { timeout: patienceMs }, (database) => {
  let house: TestConsole
  let cards: Awaited<ReturnType<typeof serveCards>>
  const viewers = new Map<string, Viewer>()

  beforeAll(async () => {
    cards = await serveCards()
    house = await startConsole({
      database,
      system: { works: false, limits: crowd },
      identify: (_administrator, { headers }) => viewers.get(String(headers['x-membership'])) ?? null,
    })
    viewers.set('local', house.viewer)
    for (const [n, content] of bytes.entries())
      await house.system.artifacts.put({ digest: digests[n] ?? '', bytes: content })
  })
  afterAll(async () => {
    await house.close()
    cards.server.close()
  })

  /** A world in the database, and the people of it who may sign in; the administrator who looks at everything last. */
  async function settled(world: World): Promise<readonly Person[]> {
    await write(
      house.db,
      world,
      ({ id, routesSkills }) => `${cards.origin}/${routesSkills ? 'routes' : 'plain'}/${id}.json`,
    )
    const people = world.people.filter(({ enabled }) => enabled)
    for (const person of people) viewers.set(person.membershipId, viewerOf(world, person))
    return people
  }

  test('in many organizations, what is held and what lists begin at is what the model says', async () => {
    const { pool } = house.db
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const world = worldOf(plan, digests, new Date())
        const model = new Model(world)
        for (const person of await settled(world)) {
          const viewer = viewerOf(world, person)
          for (const agent of world.agents)
            for (const skillId of [null, ...skillIds]) {
              const reads = model.may(person, 'read', agent, skillId)
              const operates = model.may(person, 'operate', agent, skillId)
              const isThere = agent.enabled && model.seesPartOf(person, agent)
              expect(await readHolding(pool, viewer, agent.id, skillId)).toEqual(isThere ? { reads, operates } : null)
            }
          const listed = new Map((await listAgents(pool, viewer)).map(({ id, heldSkills }) => [id, heldSkills]))
          const there = world.agents.filter((agent) => agent.enabled && model.seesPartOf(person, agent))
          expect(listed).toEqual(new Map(there.map((agent) => [agent.id, model.skillsHeld(person, agent)])))
          const tasks = model.tasksSeen(person, 'all', '').map(({ id }) => id)
          const rows = await listTasks(pool, viewer, { filter: 'all', limit: 100, offset: 0, now: '' })
          expect(rows.map(({ localId }) => localId)).toEqual(tasks)
          expect(await listViewIds(pool, viewer, null, 100)).toEqual(tasks.toSorted())
          // One by one they are asked about in other words than where a list begins.
          const views = await Promise.all(world.tasks.map(({ id }) => readView(pool, viewer, id)))
          expect(views.flatMap((view) => view?.localId ?? []).toSorted()).toEqual(tasks.toSorted())
          for (const task of world.tasks) {
            const events = await readEvents(pool, viewer, { localId: task.id, position: 0, limit: 10 })
            expect(events).toHaveLength(model.sees(person, task) ? 1 : 0)
          }
          const sent = world.commands.filter((command) => model.sees(person, command) && command.evidence)
          const evidence = await readEvidence(
            pool,
            viewer,
            world.commands.map(({ id }) => id),
          )
          expect(new Map([...evidence].map(([id, { localId }]) => [id, localId]))).toEqual(
            new Map(
              sent.map(({ id, agent, evidence }) => [id, model.localIdOf(person, agent, evidence?.remoteId ?? '')]),
            ),
          )
          const commands = await Promise.all(world.commands.map(({ id }) => findCommand(pool, viewer, id)))
          expect(commands.map((command) => command !== null)).toEqual(
            world.commands.map((command) => model.sees(person, command)),
          )
        }
      }),
      { seed, numRuns: worldsBelow, endOnFailure: true },
    )
  })

  test('every route answers everybody as the model says', async () => {
    const asked = new Asked(
      Document.parse((await house.api.get('/api/openapi.json', { 'x-membership': 'local' })).body),
    )
    const asking = { url: house.url, asked, digests }
    let visited = 0
    let stranger: World | null = null
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const world = worldOf(plan, digests, new Date())
        const model = new Model(world)
        const visits = (await settled(world)).map((person) => new Visit(asking, model, person))
        // One after another: whoever looks first at an agent's card changes what others hold of it.
        for (const visit of visits) await visit.agents()
        await Promise.all(
          visits.map(async (visit) => {
            await visit.tasks()
            await visit.commands()
            await visit.rest()
          }),
        )
        const keys = new Map<string, string>()
        for (const visit of visits) await visit.sends(keys)
        for (const visit of visits) await visit.settlements()
        if (stranger) await visits.at(-1)?.strangers(stranger)
        stranger = world
        visited += visits.length
      }),
      { seed, numRuns: worlds, endOnFailure: true },
    )
    expect(visited).toBeGreaterThan(worlds)
    expect(asked.all.filter((operation) => !asked.operations.has(operation))).toEqual(nobodys)
  })
})
