/** Secrets that a browser holds and the database only recognises. */
import { createHash, randomBytes } from 'node:crypto'

/** 256 random bits, as they go into a cookie or a query. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** What is kept of a secret. 256 random bits need no salt and no slow hash: there is nothing to guess. */
export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url')

/** Nothing else is looked up: a cookie may hold anything. */
export const isSecret = (text: string): boolean => /^[\w-]{43}$/.test(text)
