/**
 * The data directory that the launcher prepares, and its secrets.json: the vault key of a console that nobody gave one.
 * Owns creating both safely; does not own the directory's lock (bin/directory-lock.ts, taken by whoever opens the
 * database) or the key ring (actors/vault.ts).
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyRing } from '../actors/vault.ts'

/** Key id → 64 hexadecimal characters, and the id of the key that encrypts new values. */
export interface Secrets {
  readonly vaultKeys: Readonly<Record<string, string>>
  readonly activeVaultKey: string
}

/** A secrets.json that is there and cannot be used: one line that names it and holds nothing of it. Stops the start. */
export class SecretsUnusable extends Error {
  override readonly name = 'SecretsUnusable'
}

/**
 * Makes what is missing, readable by its owner alone: PGlite writes its files world-readable, so a directory above them
 * has to be closed. A directory that was there keeps its mode; it may be a mount or shared on purpose.
 */
export function prepareDataDirectory(dataDir: string): void {
  for (const directory of [dataDir, join(dataDir, 'pglite'), join(dataDir, 'artifacts')]) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  }
}

/** Reads secrets.json, or makes one. An invalid file stops the start: overwriting it would lose every stored credential. */
export function readOrCreateSecrets(dataDir: string): Secrets {
  const file = join(dataDir, 'secrets.json')
  return readSecrets(file) ?? createSecrets(file)
}

/** For a process that no launcher started, on the same data directory; null where none ever made the file. */
export function launchersKeyRing(dataDir: string): KeyRing | null {
  const secrets = readSecrets(join(dataDir, 'secrets.json'))
  return secrets && { keys: secrets.vaultKeys, activeKey: secrets.activeVaultKey }
}

function readSecrets(file: string): Secrets | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw new SecretsUnusable(`${file} cannot be read (${codeOf(error)}).`, { cause: error })
  }
  const secrets = parseSecrets(text)
  if (!secrets)
    throw new SecretsUnusable(`${file} is not a valid secrets file. Restore it from a backup; it is never overwritten.`)
  if (statSync(file).mode & 0o077) chmodSync(file, 0o600)
  return secrets
}

function parseSecrets(text: string): Secrets | null {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return null // the caller says which file; JSON.parse's message would print a piece of it
  }
  if (!isRecord(parsed) || !isRecord(parsed.vaultKeys) || typeof parsed.activeVaultKey !== 'string') return null
  const keys: Record<string, string> = {}
  for (const [id, key] of Object.entries(parsed.vaultKeys)) {
    if (typeof key !== 'string' || !/^[0-9a-f]{64}$/i.test(key)) return null
    keys[id] = key
  }
  if (!Object.hasOwn(keys, parsed.activeVaultKey)) return null
  return { vaultKeys: keys, activeVaultKey: parsed.activeVaultKey }
}

/** Written aside and linked: the file appears whole, and of two launchers that start together one key wins. */
function createSecrets(file: string): Secrets {
  const secrets: Secrets = { vaultKeys: { k1: randomBytes(32).toString('hex') }, activeVaultKey: 'k1' }
  const aside = `${file}.${process.pid}`
  writeFileSync(aside, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600, flush: true })
  try {
    linkSync(aside, file)
    return secrets
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    const winner = readSecrets(file)
    if (!winner) throw error
    return winner
  } finally {
    rmSync(aside, { force: true })
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
