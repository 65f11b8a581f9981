/**
 * `--demo`: the sample agents beside the console, registered in it as a person would. Owns the choice of port, the
 * registration and what a newcomer is told to try; does not own what the agents do (bin/demo-agent.ts).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DemoAgents } from './demo-agent.ts'
import { isPortFree } from './launcher-ready.ts'

const usualPort = 4010
const portFile = 'demo-agents.port'
const registerLimitMs = 10_000

/** `A2A_EXTENSION_HOST`, which names the agents' extensions as it names the console's. */
export const extensionHostFrom = (env: NodeJS.ProcessEnv): { readonly extensionHost?: string } =>
  env.A2A_EXTENSION_HOST ? { extensionHost: env.A2A_EXTENSION_HOST } : {}

/**
 * On the port of the last start with this data directory, so that the agents that were registered then are there again; else on
 * the usual one, or where somebody else has that, on any. A port that is taken meanwhile leaves its agents dead in the list.
 */
export async function startAgents(env: NodeJS.ProcessEnv, dataDir: string): Promise<DemoAgents> {
  const { startDemoAgents } = await import('./demo-agent.ts')
  const file = join(dataDir, portFile)
  const agents = await startDemoAgents({ port: await freePort(lastPort(file)), ...extensionHostFrom(env) })
  writeFileSync(file, `${agents.port}\n`, { mode: 0o600 })
  return agents
}

async function freePort(last: number | null): Promise<number> {
  for (const port of [last, usualPort]) if (port !== null && (await isPortFree('127.0.0.1', port))) return port
  return 0
}

/** Null where none was written, or nothing that is a port. */
function lastPort(file: string): number | null {
  try {
    const port = Number(readFileSync(file, 'utf8'))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : null
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** Registers every card; registering one again changes nothing. Resolves to the lines that say what to try. */
export async function registerAgents(agents: DemoAgents, url: string, gone: AbortSignal): Promise<string> {
  for (const cardUrl of Object.values(agents.cardUrls)) {
    const response = await fetch(`${url}/api/agents`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cardUrl }),
      signal: AbortSignal.any([gone, AbortSignal.timeout(registerLimitMs)]),
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`The sample agent ${cardUrl} could not be registered (${response.status}).`)
  }
  return `
Four sample agents run on port ${agents.port} and are registered. What to try first:
  1. Agents, Showcase: send "What leaves this morning?", watch it stream, and answer the question at its end.
  2. Send "slow", close the tab, come back, and cancel it: nothing is lost meanwhile.
  3. Actors: the statechart behind each command, with its history to replay.
`
}
