/**
 * The launcher's words: argv and the few variables that stand in for options, as one checked command. Owns the usage
 * text and the sentences of a wrong call; does not own what a command does (bin/launcher-start.ts, bin/demo-agent.ts).
 */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { isLoopbackHost } from '../domain/loopback.ts'

export interface StartCommand {
  readonly name: 'start'
  readonly host: string
  readonly port: number
  /** Absolute. */
  readonly dataDir: string
  /** `auto`: when stdout is a terminal and CI is unset. */
  readonly open: 'yes' | 'no' | 'auto'
  readonly demo: boolean
}

export type LauncherCommand =
  | StartCommand
  | { readonly name: 'demo-agent'; readonly port: number }
  /** Reads its own words (bin/audit.ts). */
  | { readonly name: 'audit'; readonly argv: readonly string[] }
  | { readonly name: 'help' }
  | { readonly name: 'version' }

type Environment = Readonly<Record<string, string | undefined>>

export const usage = `Usage: signalbox [start] [options]
       signalbox demo-agent [port]
       signalbox audit verify <file>...

Starts the console on this computer with an embedded database, serves four sample agents (port 4010), or checks exports of
the audit trail.

Options:
  -p, --port <n>         port to listen on ($PORT, else 3002)
  -H, --host <addr>      address to listen on (127.0.0.1; others need A2A_AUTH_MODE=oidc)
      --data-dir <path>  where the data lives ($A2A_DATA_DIR, else ~/.signalbox)
      --demo             also start the sample agents and register them
      --open, --no-open  open a browser tab, or don't (opens in a terminal unless CI is set)
  -h, --help             this text
  -v, --version          the version
`

const options = {
  port: { type: 'string', short: 'p' },
  host: { type: 'string', short: 'H' },
  'data-dir': { type: 'string' },
  demo: { type: 'boolean' },
  open: { type: 'boolean' },
  'no-open': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const
type Flag = keyof typeof options
const isFlag = (name: string): name is Flag => Object.hasOwn(options, name)

interface Words {
  readonly arguments: readonly string[]
  readonly flags: ReadonlyMap<Flag, string>
}

/** Reads argv; throws an Error whose message is the sentence to print. */
export function parseCommand(argv: readonly string[], env: Environment): LauncherCommand {
  const [first, ...others] = argv
  if (first === 'audit') return { name: 'audit', argv: others }
  const { arguments: given, flags } = wordsOf(argv)
  const [name = 'start', ...rest] = given
  if (flags.has('help')) return { name: 'help' }
  if (flags.has('version')) return { name: 'version' }
  if (name === 'demo-agent') return demoAgent(rest, flags)
  const extra = name === 'start' ? rest[0] : name
  if (extra !== undefined) throw new Error(`Unexpected argument "${extra}".`)
  return {
    name: 'start',
    port: portFrom(flags.get('port') ?? (env.PORT || '3002')),
    host: hostFrom(flags.get('host') ?? '127.0.0.1', env),
    dataDir: resolve(flags.get('data-dir') ?? (env.A2A_DATA_DIR || join(homedir(), '.signalbox'))),
    open: flags.has('no-open') ? 'no' : flags.has('open') ? 'yes' : 'auto',
    demo: demoAllowed(flags.has('demo'), env),
  }
}

function wordsOf(argv: readonly string[]): Words {
  // Not strict: its errors are several lines long, and the sentences here are part of the contract.
  const { tokens } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: false, tokens: true })
  const flags = new Map<Flag, string>()
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    if (!isFlag(token.name)) throw new Error(`Unknown option "${token.rawName}".`)
    flags.set(token.name, valueOf(token.name, token.rawName, token))
  }
  return { arguments: positionals, flags }
}

function valueOf(
  name: Flag,
  rawName: string,
  token: { value?: string | undefined; inlineValue?: boolean | undefined },
) {
  if (options[name].type === 'boolean') {
    if (token.value !== undefined) throw new Error(`${rawName} takes no value.`)
    return 'yes'
  }
  const missing = token.value === undefined || token.value === '' || (!token.inlineValue && token.value.startsWith('-'))
  if (missing || token.value === undefined) throw new Error(`${rawName} needs a value.`)
  return token.value
}

function demoAgent(rest: readonly string[], flags: ReadonlyMap<Flag, string>): LauncherCommand {
  const [port = flags.get('port') ?? '4010', extra] = rest
  if (extra !== undefined) throw new Error(`Unexpected argument "${extra}".`)
  for (const flag of flags.keys()) if (flag !== 'port') throw new Error(`demo-agent takes no --${flag}.`)
  return { name: 'demo-agent', port: portFrom(port) }
}

function portFrom(value: string): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : 0
  if (port < 1 || port > 65_535) throw new Error(`"${value}" is not a valid port.`)
  return port
}

function hostFrom(value: string, env: Environment): string {
  if (env.A2A_AUTH_MODE === 'oidc' || isLoopbackHost(value)) return value === '[::1]' ? '::1' : value
  throw new Error(`"${value}" is not a loopback address; other hosts need A2A_AUTH_MODE=oidc.`)
}

function demoAllowed(demo: boolean, env: Environment): boolean {
  if (demo && env.A2A_AUTH_MODE === 'oidc')
    throw new Error('--demo works without sign-in only; run `signalbox demo-agent` and add its cards in the console.')
  return demo
}
