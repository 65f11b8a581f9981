/**
 * The embedded driver: one node-postgres client over PGlite's thread, shared by Slonik's pool in turns. What a server
 * would do by itself and PGlite doesn't is persistence/drivers/pglite-housekeeping.ts. Power loss is not covered: it never calls fsync.
 */
import { chmodSync, mkdirSync } from 'node:fs'
import pg from 'pg'
import { createDriverFactory, type DriverFactory } from 'slonik'
import { IDLE_TRANSACTION_TIMEOUT_MS, type Backend, type RawClient } from './backend.ts'
import { ask, fly, type FlightLine } from './flight.ts'
import { GroupLine } from './group-line.ts'
import { columnTypes, runStatement, StatementNames, streamRows } from './node-postgres.ts'
import { PgliteHousekeeping } from './pglite-housekeeping.ts'
import { PgliteServer, PgliteSocket, type ThreadOptions } from './pglite-server.ts'
import { Session, Turns } from './pglite-session.ts'
import { asStatements, sessionSettings } from './session-settings.ts'
import { Prepared } from './statement-group.ts'
import { WakeUps } from './wake-ups.ts'

/** Slonik's clients, not sessions: with one, a query outside a transaction would wait for its own transaction for ever. */
const POOL_CLIENTS = 10
const TURN_WAIT_MS = 30_000

/** An opened PGlite and its one client. */
export interface Embedded {
  readonly server: PgliteServer
  readonly client: pg.Client
}

/** The caller holds the directory's lock. `client` is free for any use until a pool is made over it. */
export async function startPglite(options: ThreadOptions): Promise<Embedded> {
  if (options.dataDir !== undefined) {
    // PGlite creates its files world-readable and a thread can't set the umask: the directory closes them off.
    mkdirSync(options.dataDir, { recursive: true, mode: 0o700 })
    chmodSync(options.dataDir, 0o700)
  }
  const server = new PgliteServer(options)
  return { server, client: await connectTo(server, false) }
}

/** It has one session: what whoever was in it before (`isUsed`) left there is discarded before our settings are made. */
async function connectTo(server: PgliteServer, isUsed: boolean): Promise<pg.Client> {
  await server.started
  const client = new pg.Client({
    user: 'postgres',
    database: 'postgres',
    ssl: false,
    stream: () => new PgliteSocket(server),
    types: columnTypes,
  })
  // A dead thread is reported to every waiting query and by `lost`; without a listener this event would end the process.
  client.on('error', () => {})
  await client.connect()
  if (isUsed) await client.query('discard all')
  await client.query(asStatements(sessionSettings, 'session').join('; '))
  return client
}

function pgliteDriver(names: StatementNames, newSession: () => Session): DriverFactory {
  return createDriverFactory(() =>
    Promise.resolve({
      createPoolClient: () => {
        const session = newSession()
        return Promise.resolve({
          connect: () => Promise.resolve(),
          end: () => session.end(),
          query: (sql, values) => session.run((held) => runStatement(held, sql, values ?? [], names.nameOf(sql))),
          stream: (sql, values) =>
            streamRows(
              async () => ({ client: await session.begin(), done: () => session.finish() }),
              sql,
              values ?? [],
            ),
        })
      },
    }),
  )
}

/** A server that runs already goes on after `close`. */
export async function openPglite(profile: ThreadOptions | { readonly running: PgliteServer }): Promise<Backend> {
  const isGiven = 'running' in profile
  const embedded = isGiven
    ? { server: profile.running, client: await connectTo(profile.running, true) }
    : await startPglite(profile)
  const { server, client } = embedded
  const names = new StatementNames()
  const turns = new Turns(TURN_WAIT_MS)
  const housekeeping = new PgliteHousekeeping(embedded)
  const wakeUps = new WakeUps(() => Promise.resolve())
  const newSession = (): Session =>
    new Session(client, turns, {
      idleMs: IDLE_TRANSACTION_TIMEOUT_MS,
      betweenTurns: () => housekeeping.afterBurst(),
    })
  const prepared = new Prepared(columnTypes)
  const groups = new GroupLine(client, prepared)
  const line: FlightLine = { send: (statements) => groups.send(statements) }
  /** The turn ends when whoever comes next may ask. */
  const untilReady = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } finally {
      await groups.idle()
    }
  }
  const exclusively = async <T>(work: (client: RawClient) => Promise<T>): Promise<T> => {
    const session = newSession()
    await session.begin()
    try {
      return await work(client)
    } finally {
      await session.finish()
      await session.end()
    }
  }
  return {
    profile: 'pglite',
    driverFactory: pgliteDriver(names, newSession),
    maxConnections: POOL_CLIENTS,
    hearsOthers: false,
    listen: (channel, heard) => {
      const remove = wakeUps.add(channel, heard)
      return Promise.resolve(() => Promise.resolve(remove()))
    },
    notify: (channel) => wakeUps.notify(channel),
    housekeep: () => exclusively(() => housekeeping.run()),
    fly: (work) => exclusively(() => untilReady(fly(line, work))),
    ask: (statement) => exclusively(() => untilReady(ask(line, statement))),
    // Raw work may change the schema, and with it what a prepared statement returns.
    raw: (work) =>
      exclusively((client) => work(client, server.lost)).finally(() => {
        names.renew()
        prepared.renew()
      }),
    lost: server.lost,
    close: async () => {
      try {
        if (!server.lost.aborted) await exclusively(() => housekeeping.checkpoint())
      } finally {
        await client.end()
        if (!isGiven) await server.close()
      }
    },
  }
}
