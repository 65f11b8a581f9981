/**
 * A headless Chromium without a system package: unpacked once from the npm package, else the machine's own. Owns finding and
 * starting it, and a page that collects what must not happen: CSP and Trusted Types violations, page errors.
 */
import {
  chmodSync,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import { createBrotliDecompress } from 'node:zlib'
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type LaunchOptions,
  type Page,
} from 'playwright-core'
import { extract } from 'tar-fs'
import { expect, onTestFinished } from 'vitest'

const quiet = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Pages of one context share a process that is warm already, as tabs of one site do.
  '--renderer-process-limit=1',
]

interface Unpacked {
  readonly executable: string
  readonly libraries: string
  readonly fonts: string
}

/** The packaged browser, for Linux on x64; undefined elsewhere. Unpacked beside and renamed, because two runs may race. */
async function unpacked(): Promise<Unpacked | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  const require = createRequire(import.meta.url)
  const root = dirname(dirname(require.resolve('@sparticuz/chromium')))
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const home = join(tmpdir(), `signalbox-chromium-${version}-${process.getuid?.() ?? 0}`)
  const found = {
    executable: join(home, 'chromium'),
    libraries: join(home, 'al2023/lib'),
    fonts: join(home, 'fonts.conf'),
  }
  if (existsSync(home)) return found
  mkdirSync(dirname(home), { recursive: true })
  const work = mkdtempSync(`${home}-`)
  const packed = (name: string) => createReadStream(join(root, 'bin', name)).pipe(createBrotliDecompress())
  await Promise.all([
    pipeline(packed('chromium.br'), createWriteStream(join(work, 'chromium'), { mode: 0o700 })),
    pipeline(packed('al2023.tar.br'), extract(join(work, 'al2023'), { strip: 0 })),
    pipeline(packed('fonts.tar.br'), extract(join(work, 'fonts'))),
    pipeline(packed('swiftshader.tar.br'), extract(work)),
  ])
  chmodSync(join(work, 'chromium'), 0o700)
  // The packaged file names /tmp/fonts; a browser that finds no font at all crashes.
  const places = `<dir>${home}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${home}/font-cache</cachedir>`
  const document = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${places}</fontconfig>`
  writeFileSync(join(work, 'fonts.conf'), document)
  try {
    renameSync(work, home)
  } catch (error) {
    rmSync(work, { recursive: true, force: true })
    if (!existsSync(found.executable)) throw error
  }
  return found
}

async function candidates(): Promise<LaunchOptions[]> {
  const options: LaunchOptions[] = []
  const chosen = process.env['A2A_TEST_CHROMIUM']
  if (chosen) options.push({ executablePath: chosen })
  const own = await unpacked()
  if (own) {
    const env = { ...definedOnly(process.env), LD_LIBRARY_PATH: own.libraries, FONTCONFIG_FILE: own.fonts }
    options.push({ executablePath: own.executable, args: ['--no-sandbox'], env })
  }
  for (const path of ['/usr/bin/chromium', '/usr/bin/chromium-browser']) {
    if (existsSync(path)) options.push({ executablePath: path })
  }
  return [...options, { channel: 'chrome' }, { channel: 'msedge' }]
}

const definedOnly = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** Starts the first browser that starts. A2A_TEST_CHROMIUM names one to try first. */
async function started(more: readonly string[]): Promise<Browser> {
  const root = process.getuid?.() === 0 ? ['--no-sandbox', ...more] : more
  const reasons: string[] = []
  for (const options of await candidates()) {
    try {
      return await chromium.launch({ headless: true, ...options, args: [...quiet, ...root, ...(options.args ?? [])] })
    } catch (error) {
      const name = options.executablePath ?? options.channel ?? 'default'
      reasons.push(
        `${name}: ${error instanceof Error ? error.message.split('\n').slice(0, 6).join(' ') : String(error)}`,
      )
    }
  }
  throw new Error(`No browser could be started; set A2A_TEST_CHROMIUM.\n${reasons.join('\n')}`)
}

/** A start takes some seconds of a processor: the files of a worker share a browser, and each page has a context of its own. */
let shared: Browser | null = null

/** A browser for a file, or one of its own with more arguments. `leaveBrowser` is its end. */
export async function launchBrowser(more: readonly string[] = []): Promise<Browser> {
  if (more.length > 0) return started(more)
  if (!shared?.isConnected()) shared = await started([])
  return shared
}

/**
 * Nothing that was opened in it is left, nor a connection to a server that is to end. It ends with the worker, whose end is the
 * end of its pipe.
 */
export async function leaveBrowser(browser: Browser): Promise<void> {
  if (browser !== shared) return browser.close()
  resting.length = 0
  await Promise.all(browser.contexts().map((context) => context.close()))
}

/** A context of the shared browser, and the page in it that is never shown: with it a process stays, and what that has loaded. */
interface Profile {
  readonly context: BrowserContext
  readonly options: string
  readonly anchor: Page
}
/** A file's profiles whose pages are closed: the next page of the same options takes half of what it takes in a new one. */
const resting: Profile[] = []
const RESTING_LIMIT = 3
const profiles = new WeakMap<BrowserContext, Profile>()

const usual = { viewport: { width: 1440, height: 900 } }

async function profileWith(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  const key = JSON.stringify(options)
  const at = browser === shared ? resting.findIndex((each) => each.options === key) : -1
  const [rested] = at < 0 ? [] : resting.splice(at, 1)
  if (rested) return rested.context
  const context = await browser.newContext({ ...usual, ...options })
  if (browser === shared) profiles.set(context, { context, options: key, anchor: await context.newPage() })
  return context
}

/** A page that cannot be emptied by then is not worth waiting for. */
const emptiedMs = 5_000

/** Closes a page and all others of its context, and forgets what they kept. A context that was made otherwise is closed. */
export async function leavePage(page: Page): Promise<void> {
  const context = page.context()
  const profile = profiles.get(context)
  if (!profile) return context.close()
  const isEmpty = await Promise.race([emptied(profile), setTimeout(emptiedMs, false, { ref: false })])
  if (!isEmpty) return context.close()
  resting.push(profile)
  if (resting.length > RESTING_LIMIT) await resting.shift()?.context.close()
}

async function emptied({ context, anchor }: Profile): Promise<boolean> {
  const pages = context.pages().filter((each) => each !== anchor)
  // What a session keeps goes with its page; a page without an origin keeps nothing, and says so.
  await Promise.allSettled(pages.map((each) => each.evaluate(() => localStorage.clear())))
  const closed = await Promise.allSettled([context.clearCookies(), ...pages.map((each) => each.close())])
  return closed.every(({ status }) => status === 'fulfilled')
}

export interface WatchedPage {
  readonly page: Page
  /** What the page did that it must not: CSP and Trusted Types violations, errors nobody caught. Empty is good. */
  readonly violations: string[]
}

/** Playwright waits for a context and its page without a limit: after this one others are asked for. */
const openedMs = 10_000

async function pageOf(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const opening = profileWith(browser, options).then((context) => context.newPage())
  const page = await Promise.race([opening, setTimeout(openedMs, null, { ref: false })])
  return page ?? (await browser.newContext({ ...usual, ...options })).newPage()
}

/** A page that is alone in its context, so that storage, theme and width are this test's. `leavePage` is its end. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const page = await pageOf(browser, options)
  const violations: string[] = []
  page.on('pageerror', (error) => violations.push(`page error: ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    if (/Content Security Policy|Trusted ?Type|TrustedHTML/i.test(text)) violations.push(text)
  })
  return { page, violations }
}

/** A page for one test: it is left when that is over, and has done nothing that it must not. */
export async function pageForTest(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const { page, violations } = await openPage(browser, options)
  onTestFinished(async () => {
    await leavePage(page)
    expect(violations).toEqual([])
  })
  return page
}

/** The same, at an address. */
export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await pageForTest(browser, options)
  await page.goto(url)
  return page
}

/** Another page of the console, as a person goes there: nothing is loaded again, which is most of what opening one takes. */
export const goTo = (page: Page, path: string): Promise<void> =>
  page.evaluate((to) => document.querySelector('signalbox-console')?.app?.router.go(to), path)

/** Whatever was on its way to the screen is there. */
export const drawn = (page: Page): Promise<void> =>
  page.evaluate(
    () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
  )
