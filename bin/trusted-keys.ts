/**
 * Sees at the start that every pinned key can verify a card. Its shape is checked where it is read (config-variables.ts); a
 * point that is not on its curve, a modulus that is too short or a curve that does not fit its algorithm only show when the
 * key is used, and would make every card of its origin invalid.
 */
import { faultOfKey } from '../a2a/signatures.ts'
import { ConfigError, type Config } from './config.ts'

/** Rejects with a ConfigError that names the origin and the key. */
export async function requireUsableKeys({ trustedKeys }: Config['cards']): Promise<void> {
  for (const [origin, keys] of Object.entries(trustedKeys))
    for (const key of keys) {
      const fault = await faultOfKey(key)
      if (fault === null) continue
      throw new ConfigError(`A2A_TRUSTED_CARD_KEYS: the key ${key.kid} for ${origin} cannot be used (${fault}).`)
    }
}
