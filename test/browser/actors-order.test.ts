/**
 * A list of actors that is read a page at a time while its actors move: nobody is missed, doubled or moved under who reads. The pages
 * are cut as the server cuts them, by the last step.
 */
import { expect, it } from 'vitest'
import type { ActorPage } from '../../domain/actor.ts'
import type { ActorSummary } from '../../domain/chart.ts'
import { ActorPages } from '../../ui/pages/actors-pages.ts'
import { actorIn, at } from '../domain/seen-actors.ts'

const pageSize = 3

/** Actors that the server has, and its pages of them. */
class Server {
  readonly #actors = new Map<string, ActorSummary>()
  #clock = 0

  moves(id: string, more: Partial<ActorSummary> = {}): void {
    const now = at((this.#clock += 1_000))
    const revision = (this.#actors.get(id)?.revision ?? 0) + 1
    this.#actors.set(id, actorIn('subscription', 'resting', { id, revision, updatedAt: now, movedAt: now, ...more }))
  }
  forgets(id: string): void {
    this.#actors.delete(id)
  }
  page(cursor: string | null = null): ActorPage {
    const newest = [...this.#actors.values()].toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt))
    const behind = newest.filter(({ updatedAt }) => cursor === null || updatedAt < cursor)
    const actors = behind.slice(0, pageSize)
    return { actors, next: behind.length > pageSize ? (actors.at(-1)?.updatedAt ?? null) : null }
  }
  readonly read = (cursor: string): Promise<ActorPage> => Promise.resolve(this.page(cursor))
}

const idsOf = (pages: ActorPages, server: Server): string =>
  pages
    .shown(server.page())
    .rows.map(({ id }) => id)
    .join('')

/** `a` moved first and `g` last. */
function seven(): { readonly server: Server; readonly pages: ActorPages } {
  const server = new Server()
  for (const id of 'abcdefg') server.moves(id)
  return { server, pages: new ActorPages() }
}

it('a page that follows comes below what is shown, and every actor is there once', async () => {
  const { server, pages } = seven()
  expect(idsOf(pages, server)).toBe('gfe')
  await pages.more(server.read)
  await pages.more(server.read)
  expect(idsOf(pages, server)).toBe('gfedcba')
  expect(pages.next).toBeNull()
})

it('who needs a person on a later page is its first, and moves nobody above it', async () => {
  const { server, pages } = seven()
  server.moves('b', { attention: true })
  for (const id of 'defg') server.moves(id)
  idsOf(pages, server)
  await pages.more(server.read)
  expect(idsOf(pages, server)).toBe('gfebdc')
})

it('who is pushed off the first page by others keeps its place, whether a later page was read before or not', async () => {
  const { server, pages } = seven()
  idsOf(pages, server)
  server.moves('h')
  expect(idsOf(pages, server)).toBe('gfe')
  await pages.more(server.read)
  expect(idsOf(pages, server)).toBe('gfedc')
  for (const id of 'ij') server.moves(id)
  expect(idsOf(pages, server)).toBe('gfedc')
  await pages.more(server.read)
  expect(idsOf(pages, server)).toBe('gfedcba')
  expect(pages.shown(server.page()).waiting).toBe(3)
})

it('who moves while it is on a later page is shown as it is now, once, and where it was', async () => {
  const { server, pages } = seven()
  idsOf(pages, server)
  await pages.more(server.read)
  server.moves('c', { title: 'moved' })
  const { rows } = pages.shown(server.page())
  expect(rows.map(({ id, title }) => id + title)).toEqual(['g', 'f', 'e', 'd', 'cmoved', 'b'])
})

it('who is not in the answer any more leaves the list', () => {
  const { server, pages } = seven()
  idsOf(pages, server)
  server.forgets('f')
  expect(idsOf(pages, server)).toBe('ge')
})

it('begun anew, every actor can be read again: no page is kept beside one that was cut elsewhere', async () => {
  const { server, pages } = seven()
  idsOf(pages, server)
  await pages.more(server.read)
  for (const id of 'hijkl') server.moves(id)
  idsOf(pages, server)
  pages.restart()
  let shown = idsOf(pages, server)
  while (pages.next !== null) {
    await pages.more(server.read)
    shown = idsOf(pages, server)
  }
  expect(shown).toBe('lkjihgfedcba')
})

it('a page that is asked for twice is one page, and one that nobody waits for any more is none', async () => {
  const { server, pages } = seven()
  idsOf(pages, server)
  const twice = await Promise.all([pages.more(server.read), pages.more(server.read)])
  expect(twice).toEqual(['read', 'dropped'])
  expect(idsOf(pages, server)).toBe('gfedcb')
  const late = pages.more(server.read)
  pages.restart()
  expect(await late).toBe('dropped')
  expect(idsOf(pages, server)).toBe('gfe')
})
