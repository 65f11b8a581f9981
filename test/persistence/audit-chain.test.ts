/**
 * The audit chain on both databases: nothing that commits is passed over, however late; nothing is linked twice; whatever is
 * done to the rows behind its back is found. Tampering is done as the owner of the tables, with their triggers disabled.
 */
import { randomUUID } from 'node:crypto'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { sha256 } from '../../actors/audit-chain.ts'
import { newToken } from '../../actors/tokens.ts'
import { chainStart, ChainWalk, type ChainFaultKind } from '../../domain/audit-chain.ts'
import { appendAudit } from '../../persistence/audit.ts'
import { countUnlinked, findHead, linkRows, readLinks } from '../../persistence/audit-chain.ts'
import { chainedOrganizations, checkLinks, lastCheck } from '../../persistence/audit-check.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import type { Transaction } from '../../persistence/connection.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const at = '2026-11-22T10:00:00.000Z'
const later = (hours: number): string => new Date(Date.parse(at) + hours * 3_600_000).toISOString()

const append = (tx: Transaction, organizationId: string, note = 'x'): Promise<void> =>
  appendAudit(
    tx,
    {
      id: newToken(),
      organizationId,
      kind: 'session.ended',
      actorType: 'user',
      personId: null,
      subjectId: randomUUID(),
      data: { note },
    },
    at,
  )

const appendMany = async (db: Database, organizationId: string, count: number): Promise<void> => {
  for (let n = 0; n < count; n++) await db.pool.transaction((tx) => append(tx, organizationId, `row ${n}`))
}

const unlinked = (db: Database): Promise<number> =>
  db.pool.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*)::int as n from audit where place > (select place from audit_linking)`)

/** Passes until every row is linked. On a server that other tests use, too, it waits for whatever they have open. */
async function linkAll(db: Database): Promise<void> {
  const pass = async (): Promise<number> => {
    while ((await linkRows(db.pool, sha256, at)).links > 0) continue
    return unlinked(db)
  }
  await expect.poll(pass, { timeout: 20_000 }).toBe(0)
}

async function faultsOf(db: Database, organizationId: string): Promise<ChainFaultKind[]> {
  const head = await findHead(db.pool, organizationId)
  const links = await readLinks(db.pool, organizationId, { after: 0, to: head.number, limit: 100_000 })
  const walk = new ChainWalk(organizationId, chainStart, sha256)
  const faults = links.flatMap((link) => walk.follow(link, link.row) ?? [])
  return walk.at.hash === head.hash ? faults : [...faults, 'end']
}

/** A whole walk by the product's own check, begun anew. */
async function checked(db: Database, organizationId: string, hours: number) {
  const times = { at: later(hours), staleBefore: later(hours - 0.5) }
  for (let pass = 0; pass < 100; pass++) {
    const result = await checkLinks(db.pool, organizationId, sha256, times)
    if (result === 'rests') throw new Error('It was not time for a walk.')
    if (result !== 'goes on') return result.fault
  }
  throw new Error('The walk never ended.')
}

const undone = new Error('undone')
const unlessUndone = (error: unknown): void => {
  if (error !== undone) throw error
}

const count = (db: Database, organizationId: string): Promise<number> =>
  db.pool.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*)::int as n from audit_link where organization_id = ${organizationId}`)

describe.each(bothDatabases)('the audit chain on %s', (kind) => {
  let fresh: FreshDatabase
  let db: Database
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    db = fresh.db
  })
  afterAll(() => fresh.close())

  test('links every row once, in order, one chain an organization', async () => {
    const [one, other] = [randomUUID(), randomUUID()]
    for (let n = 0; n < 3; n++) {
      await appendMany(db, one, 2)
      await appendMany(db, other, 1)
    }
    expect(await countUnlinked(db.pool, one)).toBe(6)
    await linkAll(db)
    expect(await count(db, one)).toBe(6)
    expect(await count(db, other)).toBe(3)
    expect(await countUnlinked(db.pool, one)).toBe(0)
    expect(await faultsOf(db, one)).toEqual([])
    expect(await faultsOf(db, other)).toEqual([])
    expect(await findHead(db.pool, one)).toMatchObject({ number: 6, linkedAt: at })
    expect(await checked(db, one, 0)).toBe(null)
    expect(await lastCheck(db.pool, one)).toEqual({ checkedAt: at, fault: null })
  })

  test('a link refuses to be changed, like the row it links', async () => {
    for (const table of ['audit', 'audit_link'])
      for (const statement of [`update ${table} set place = place`, `delete from ${table}`, `truncate ${table}`])
        for (const role of ['origin', 'replica']) {
          // As a replica's session ordinary triggers rest. It lasts as long as the transaction, which the refusal ends.
          const tampering = `begin; set local session_replication_role = ${role}; ${statement}; commit`
          await expect(
            db.raw(async (client) => {
              try {
                await client.query(tampering)
              } finally {
                await client.query('rollback')
              }
            }),
          ).rejects.toThrow('audit records are append-only')
        }
  })

  test('every column of a row is hashed', async () => {
    const organization = randomUUID()
    await appendMany(db, organization, 1)
    await linkAll(db)
    const [link] = await readLinks(db.pool, organization, { after: 0, to: 1, limit: 1 })
    const hashed = Object.keys(link?.row ?? {}).map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`))
    const columns = await db.pool.anyFirst(sql.type(z.object({ name: z.string() }))`
      select column_name as name from information_schema.columns where table_name = 'audit'`)
    expect(hashed.map((name) => name.toLowerCase()).toSorted()).toEqual([...columns].toSorted())
  })

  test('two linkers and many writers at once: every row is linked, once', async () => {
    const organization = randomUUID()
    const another = fresh.profile.kind === 'postgresql' ? await openDatabase(fresh.profile) : null
    const writers = [db, another ?? db, db, another ?? db].map((each) => appendMany(each, organization, 40))
    let writing = true
    const linkers = [db, another ?? db].map(async (each) => {
      let links = 0
      while (writing) links += (await linkRows(each.pool, sha256, at)).links
      return links
    })
    await Promise.all(writers)
    writing = false
    await Promise.all(linkers)
    await linkAll(db)
    await another?.close()
    expect(await count(db, organization)).toBe(160)
    expect(await faultsOf(db, organization)).toEqual([])
  })

  test('a database that was restored into another cluster goes on with its chain', async () => {
    const organization = randomUUID()
    await appendMany(db, organization, 2)
    await linkAll(db)
    await appendMany(db, organization, 2)
    // What a dump brings along: it waits for a transaction of the old cluster, whose ids were far ahead.
    await db.pool.query(sql.unsafe`update audit_linking set pending_place = place, pending_xid = '9999999999'::xid8`)
    await linkAll(db)
    expect(await count(db, organization)).toBe(4)
    expect(await faultsOf(db, organization)).toEqual([])
  })

  /** Rows 1 to 5 of a chain, with a place between 3 and 4 that was drawn and never used. */
  async function fiveRows(organization: string): Promise<readonly number[]> {
    await appendMany(db, organization, 3)
    await db.pool
      .transaction(async (tx) => {
        await append(tx, organization)
        throw undone
      })
      .catch(unlessUndone)
    await appendMany(db, organization, 2)
    await linkAll(db)
    const links = await readLinks(db.pool, organization, { after: 0, to: 5, limit: 5 })
    expect(links).toHaveLength(5)
    return links.map(({ place }) => place)
  }

  const link = (number: number): string => `organization_id = $1 and number = ${number}`
  const moveHead = `update audit_chain set number = 4, hash = (select hash from audit_link where ${link(4)}) where organization_id = $1`
  type Tampering = (places: readonly number[]) => readonly string[]

  /** Each as somebody with the rights of the tables' owner would do it, given the places of rows 1 to 5. */
  const tampering: Readonly<Record<string, readonly [ChainFaultKind, Tampering]>> = {
    'an edit of what was done': ['row', (p) => [`update audit set data = '{"note":"y"}' where place = ${p[2]}`]],
    'an edit of when, by a microsecond': [
      'row',
      (p) => [`update audit set at = at + interval '1 microsecond' where place = ${p[2]}`],
    ],
    'an edit of when, to the same day before Christ': [
      'row',
      (p) => [
        `update audit set at = (to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00 BC')::timestamptz
         where place = ${p[2]}`,
      ],
    ],
    'an edit to a number that JSON cannot say': [
      'row',
      (p) => [`update audit set data = '{"note": 1e400}' where place = ${p[2]}`],
    ],
    'an edit of its id': ['row', (p) => [`update audit set id = gen_random_uuid() where place = ${p[2]}`]],
    'an edit of its person': [
      'row',
      (p) => [`update audit set actor_person_id = gen_random_uuid() where place = ${p[2]}`],
    ],
    'an edit of its task': ['row', (p) => [`update audit set task_id = gen_random_uuid() where place = ${p[2]}`]],
    'an edit of its subject': ['row', (p) => [`update audit set subject_id = null where place = ${p[2]}`]],
    'an edit of who': ['row', (p) => [`update audit set actor_type = 'system' where place = ${p[2]}`]],
    'an edit, with another hash on its link': [
      'row',
      (p) => [
        `update audit set kind = 'session.started' where place = ${p[2]}`,
        `update audit_link set hash = sha256('made up') where ${link(3)}`,
      ],
    ],
    'another predecessor': [
      'previous',
      () => [`update audit_link set previous_hash = sha256('made up') where ${link(3)}`],
    ],
    'a row that is gone': ['missing', (p) => [`delete from audit where place = ${p[2]}`]],
    'a row and its link that are gone': [
      'gap',
      (p) => [`delete from audit where place = ${p[2]}`, `delete from audit_link where ${link(3)}`],
    ],
    'rows that changed places': [
      'row',
      (p) => [
        `update audit set place = -place where place in (${p[1]}, ${p[2]})`,
        `update audit set place = case place when -${p[1]} then ${p[2]} else ${p[1]} end where place in (-${p[1]}, -${p[2]})`,
      ],
    ],
    'links that changed numbers': [
      'previous',
      () => [
        `update audit_link set number = -number where organization_id = $1 and number in (2, 3)`,
        `update audit_link set number = 5 + number where organization_id = $1 and number < 0`,
      ],
    ],
    'a row put in between': [
      'stray',
      (p) => [
        `insert into audit (place, id, organization_id, at, kind, actor_type, data)
         values (${(p[2] ?? 0) + 1}, gen_random_uuid(), $1, now(), 'session.ended', 'user', '{}')`,
      ],
    ],
    'a row of another organization': [
      'organization',
      (p) => [`update audit set organization_id = gen_random_uuid() where place = ${p[2]} and $1::uuid is not null`],
    ],
    'an end that was cut off, row and link': [
      'end',
      (p) => [`delete from audit where place = ${p[4]}`, `delete from audit_link where ${link(5)}`],
    ],
    'a link that was cut off, and its head moved': ['end', () => [moveHead, `delete from audit_link where ${link(5)}`]],
    'a head that was moved': ['end', () => [moveHead]],
    'a head that is gone': ['end', () => [`delete from audit_chain where organization_id = $1`]],
  }

  /** The linker's own books are rows, too: whatever becomes of them, it must neither fail for ever nor link a row twice. */
  const spoiltBooks: Readonly<Record<string, readonly [string, ChainFaultKind | null]>> = {
    'a head that was set back': [moveHead, null],
    'a head that is gone': [`delete from audit_chain where organization_id = $1`, null],
    'a place that was set back': [
      `update audit_linking set place = 0, pending_place = null where $1::uuid is not null`,
      null,
    ],
    'a place that is gone': [`delete from audit_linking where $1::uuid is not null`, null],
    'a row that has no text to hash': [
      `insert into audit (id, organization_id, at, kind, actor_type, data)
       values (gen_random_uuid(), $1, now(), 'session.ended', 'user', '{"note": 1e400}')`,
      'stray',
    ],
    'links that are all gone': [`delete from audit_link where organization_id = $1`, 'gap'],
  }

  test.each(Object.entries(spoiltBooks))('goes on linking behind %s', async (_name, [statement, fault]) => {
    const organization = randomUUID()
    await db.pool.query(
      sql.unsafe`insert into organization (id, slug, name) values (${organization}, ${organization}, 'x')`,
    )
    await fiveRows(organization)
    await db.raw(async (client) => {
      await client.query('alter table audit_link disable trigger all')
      await client.query(statement, [organization])
      await client.query('alter table audit_link enable always trigger audit_link_append_only')
    })
    await appendMany(db, organization, 1)
    expect(await countUnlinked(db.pool, organization)).toBeGreaterThan(0)
    await linkAll(db)
    expect(await findHead(db.pool, organization)).toMatchObject({ number: 6 })
    expect(await chainedOrganizations(db.pool)).toContain(organization)
    expect((await checked(db, organization, 0))?.kind ?? null).toBe(fault)
  })

  test.each(Object.entries(tampering))('finds %s', async (_name, [fault, statements]) => {
    const organization = randomUUID()
    const places = await fiveRows(organization)
    expect(await checked(db, organization, 0)).toBe(null)
    await db.raw(async (client) => {
      const triggers = async (state: 'disable' | 'enable'): Promise<void> => {
        for (const table of ['audit', 'audit_link']) await client.query(`alter table ${table} ${state} trigger all`)
      }
      await triggers('disable')
      for (const text of statements(places)) await client.query(text, text.includes('$1') ? [organization] : [])
      await triggers('enable')
    })
    expect(await checked(db, organization, 1)).toMatchObject({ kind: fault })
    expect((await lastCheck(db.pool, organization)).fault).toMatchObject({ kind: fault })
  })
})

describe('on PostgreSQL, with transactions that overlap', () => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
  })
  afterAll(() => fresh.close())

  /** Runs `meanwhile` while a transaction that has appended a row is open on a connection of its own, and then ends it. */
  const overlapped = (organization: string, end: 'commit' | 'rollback', meanwhile: () => Promise<void>) =>
    fresh.db.raw(async (client) => {
      await client.query('begin')
      await client.query(
        `insert into audit (id, organization_id, at, kind, actor_type, data)
         values (gen_random_uuid(), $1, now(), 'session.ended', 'user', '{"note": "early place, late commit"}')`,
        [organization],
      )
      try {
        await meanwhile()
      } finally {
        await client.query(end)
      }
    })

  test.each(['commit', 'rollback'] as const)('waits for an earlier place until its %s', async (end) => {
    const { db } = fresh
    const organization = randomUUID()
    await overlapped(organization, end, async () => {
      await appendMany(db, organization, 3)
      for (let pass = 0; pass < 3; pass++) expect((await linkRows(db.pool, sha256, at)).links).toBe(0)
      expect(await countUnlinked(db.pool, organization)).toBe(3)
    })
    await linkAll(db)
    expect(await count(db, organization)).toBe(end === 'commit' ? 4 : 3)
    expect(await faultsOf(db, organization)).toEqual([])
    expect(await checked(db, organization, 0)).toBe(null)
  })

  test('a backlog is linked to its end while others go on writing', async () => {
    const { db } = fresh
    const organization = randomUUID()
    const links: number[] = []
    const pass = async (): Promise<void> => void links.push((await linkRows(db.pool, sha256, at)).links)
    const during = (work: () => Promise<void>) => overlapped(organization, 'rollback', work)
    await db.pool.query(sql.unsafe`
      insert into audit (id, organization_id, at, kind, actor_type, data)
      select gen_random_uuid(), ${organization}, ${at}, 'session.ended', 'user', '{}' from generate_series(1, 600)`)
    await during(pass)
    await during(async () => {
      for (let n = 0; n < 3; n++) await pass()
    })
    expect(links).toEqual([0, 250, 250, 100])
    expect(await faultsOf(db, organization)).toEqual([])
  })

  test('whoever has a place has a transaction id', async () => {
    await fresh.db.raw(async (client) => {
      const { rows } = await client.query(`
        select pg_get_expr(d.adbin, d.adrelid) as text from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid
          and a.attnum = d.adnum where d.adrelid = 'audit'::regclass and a.attname = 'place'`)
      const [row] = z.array(z.object({ text: z.string() })).parse(rows)
      const idAfter = async (expression: string): Promise<boolean> => {
        await client.query('begin')
        await client.query(`select ${expression}`)
        const answer = await client.query('select pg_current_xact_id_if_assigned() is not null as "has"')
        await client.query('rollback')
        return z.array(z.object({ has: z.boolean() })).parse(answer.rows)[0]?.has ?? false
      }
      const [bare, ours]: [boolean[], boolean[]] = [[], []]
      for (let n = 0; n < 40; n++) {
        bare.push(await idAfter(`nextval('audit_place')`))
        ours.push(await idAfter(row?.text ?? ''))
      }
      // Drawing a number takes an id only now and then, when it is logged: that is why the column's default asks for one.
      expect(bare).toContain(false)
      expect(ours).not.toContain(false)
    })
  })
})
