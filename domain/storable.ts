/** An agent's names as they are kept: what is compared with what is known has to be made so first. Owns no text that is kept as JSON (json-text.ts). */

/** PostgreSQL's text cannot hold NUL, and a lone surrogate is not UTF-8. */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()
