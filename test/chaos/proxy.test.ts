/** The bad network is as bad as it says, and no worse: each kind of weather, and the commit whose answer is lost. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fair, startProxy, type Proxy } from './proxy.ts'
import { pgUrl } from '../support/databases.ts'

describe('weather', () => {
  let echo: Server
  let proxy: Proxy
  beforeAll(async () => {
    echo = createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => socket.destroy()).pipe(socket))
    echo.listen(0, '127.0.0.1')
    await once(echo, 'listening')
  })
  afterAll(() => void echo.close())
  beforeEach(async () => {
    proxy = await startProxy({ host: '127.0.0.1', port: (echo.address() as AddressInfo).port })
  })
  afterEach(() => proxy.close())

  const open = async (): Promise<{ readonly socket: Socket; heard(length: number): Promise<string> }> => {
    const socket = connect({ host: '127.0.0.1', port: proxy.port, allowHalfOpen: true })
    let text = ''
    socket.on('data', (chunk: Buffer) => void (text += chunk.toString()))
    await once(socket, 'connect')
    return {
      socket,
      /** What came in all, once it is that long. */
      heard: async (length) => {
        while (text.length < length) await once(socket, 'data')
        return text
      },
    }
  }
  /** Sends and reads that much back. */
  const around = async (line: Awaited<ReturnType<typeof open>>, text: string): Promise<string> => {
    line.socket.write(text)
    return line.heard(text.length)
  }
  const silence = (): Promise<unknown> => once(AbortSignal.timeout(50), 'abort').then(() => 'silence')

  it('passes everything on, in order, and the end of each direction by itself', async () => {
    const line = await open()
    const text = 'abcdefghij'.repeat(50_000)
    expect(await around(line, text)).toBe(text)
    const ended = once(line.socket, 'end')
    line.socket.end('last')
    expect(await line.heard(text.length + 4)).toBe(`${text}last`)
    await ended
  })

  it('takes its time', async () => {
    proxy.turn({ latencyMs: 60 })
    const from = performance.now()
    await around(await open(), 'x')
    expect(performance.now() - from).toBeGreaterThanOrEqual(115)
  })

  it('lets few bytes a second through, and few at once', async () => {
    proxy.turn({ bytesPerSecond: 10_000, sliceBytes: 7 })
    const from = performance.now()
    expect(await around(await open(), 'x'.repeat(1000))).toBe('x'.repeat(1000))
    expect(performance.now() - from).toBeGreaterThanOrEqual(190)
  })

  it('swallows without closing, and gives it back when the sky clears', async () => {
    const line = await open()
    await around(line, 'before')
    proxy.turn({ stalled: true })
    line.socket.write('meanwhile')
    const heard = line.heard('beforemeanwhile'.length)
    expect(await Promise.race([heard, silence()])).toBe('silence')
    proxy.turn(fair)
    expect(await heard).toBe('beforemeanwhile')
  })

  it('resets what stands and refuses what comes', async () => {
    const line = await open()
    await around(line, 'x')
    const failed = once(line.socket, 'error')
    expect(proxy.reset()).toBe(1)
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
    proxy.turn({ refusing: true })
    const refused = connect({ host: '127.0.0.1', port: proxy.port })
    expect((await once(refused, 'error'))[0]).toMatchObject({ code: 'ECONNRESET' })
  })

  it('leaves a half-open connection: it takes words and gives none', async () => {
    const { socket, heard } = await open()
    await around({ socket, heard }, 'x')
    proxy.halfOpen()
    socket.write('into the void')
    const told = Promise.race([heard(2), once(socket, 'close')])
    expect(await Promise.race([told, silence()])).toBe('silence')
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
  })
})

describe('a commit whose acknowledgement is lost', () => {
  let proxy: Proxy
  beforeAll(async () => {
    const { hostname, port } = new URL(pgUrl())
    proxy = await startProxy({ host: hostname, port: Number(port) })
  })
  afterAll(() => proxy.close())

  const client = async (port?: number): Promise<pg.Client> => {
    const url = new URL(pgUrl())
    if (port !== undefined) url.port = String(port)
    const opened = new pg.Client({ connectionString: url.href })
    opened.on('error', () => undefined)
    await opened.connect()
    return opened
  }

  it.each([
    ['plain', 'commit', true],
    ['prepared', { name: 'end', text: 'COMMIT' }, true],
    ['never delivered', 'commit', false],
  ] as const)('%s', async (name, commit, delivered) => {
    const table = `lost_${name.replaceAll(' ', '_')}`
    const beside = await client()
    await beside.query(`create table ${table} (n int)`)
    const through = await client(proxy.port)
    // Prepared under a name: what a loser has to recognise is then the name.
    await through.query('begin')
    await through.query(commit)
    await through.query('begin')
    await through.query(`insert into ${table} values (1)`)
    const before = proxy.commitsLost
    proxy.loseCommits(1, delivered)
    await expect(through.query(commit)).rejects.toThrow(/terminated|ECONNRESET/)
    expect(proxy.commitsLost - before).toBe(1)
    const count = async () =>
      Number((await beside.query<{ n: string }>(`select count(*) as n from ${table}`)).rows[0]?.n)
    await expect.poll(count).toBe(delivered ? 1 : 0)
    await beside.query(`drop table ${table}`)
    await beside.end()
  })
})
