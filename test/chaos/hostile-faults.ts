/**
 * The ways in which an agent misbehaves (F9 and F10), for whichever operation meets them: names, faults, and what the rules
 * say of a send that met one. Owns the list; how a fault is put on a socket is test/support/peers/raw-faults.ts and
 * raw-front.ts.
 */
import { commandErrors } from '../../domain/command.ts'
import type { FrontFault } from '../support/peers/raw-front.ts'
import { deepJson, garbage, wrongTypes } from '../support/peers/raw-faults.ts'

const MiB = 1024 * 1024

/** Megabytes where a pass is short, the size of the plan (30 MiB, 4 GiB) where it is long. */
export interface Sizes {
  readonly floodBytes: number
  readonly bombBytes: number
}
export const shortSizes: Sizes = { floodBytes: 26 * MiB, bombBytes: 64 * MiB }
export const longSizes: Sizes = { floodBytes: 30 * MiB, bombBytes: 4096 * MiB }

export interface Misdeed {
  readonly name: string
  readonly fault: FrontFault
  /** The answer is whole and true all the same. */
  readonly harmless: boolean
}

/** `type`: the content type of the answer that was asked for, so that the fault is met where that type is read. */
export function misdeeds(type: string, { floodBytes, bombBytes }: Sizes): readonly Misdeed[] {
  const bad = (name: string, fault: FrontFault): Misdeed => ({ name, fault, harmless: false })
  const odd = (name: string, fault: FrontFault): Misdeed => ({ name, fault, harmless: true })
  const body = (text: string): FrontFault => ({ fault: 'body', body: text, headers: { 'content-type': type } })
  return [
    bad('hangs before the head', { fault: 'hang-before-head' }),
    bad('hangs after the head', { fault: 'hang-after-head', type }),
    bad('drips and never ends', { fault: 'trickle', everyMs: 20, type }),
    bad('resets before the head', { fault: 'reset', performed: false }),
    bad('resets in the body', { fault: 'cut-body', afterBytes: 20, how: 'reset' }),
    bad('leaves in the body', { fault: 'cut-body', afterBytes: 20, how: 'half-close' }),
    bad('hangs in the body', { fault: 'cut-body', afterBytes: 20, how: 'hang' }),
    bad('promises more than it says', { fault: 'cut-short', body: '{"jsonrpc":"2.0"', type }),
    bad('floods', { fault: 'flood', bytes: floodBytes, type }),
    bad('sends a gzip bomb', { fault: 'gzip-bomb', bytes: bombBytes, type }),
    bad('sends endless headers', { fault: 'endless-headers', bytes: MiB }),
    bad('sends half a JSON', 'body' in garbage ? body(garbage.body) : garbage),
    bad('sends wrong types', 'body' in wrongTypes ? body(wrongTypes.body) : wrongTypes),
    bad('sends JSON 100,000 levels deep', deepJson(100_000)),
    bad('sends arrays 100,000 levels deep', body(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)),
    bad('sends NUL bytes', body('\0'.repeat(1000))),
    bad('sends bytes that are no text', body('\u{fffd}\u{feff}\u{1f4a3}')),
    bad('sends nothing', body('')),
    bad('fails inside', { fault: 'status', status: 500 }),
    bad('redirects', { fault: 'redirect', location: 'http://127.0.0.1:9/' }),
    odd('announces its answer', { fault: 'interim', statuses: [100, 103, 100] }),
    odd('begins eight bytes at a time', { fault: 'drip', bytes: 8 }),
    odd('starts with a BOM', { fault: 'prefix', text: '\u{feff}' }),
    odd('mixes its line ends', { fault: 'line-ends' }),
  ]
}

/** What becomes of a send: nothing that may have been done is called undone. */
export const fateOfSend = ({ harmless }: Misdeed) =>
  harmless ? { status: 'succeeded', error: null } : { status: 'uncertain', error: commandErrors.uncertain }
