/**
 * How much a run plays: the test command all that fits into ten minutes of two cores, the long pass (`npm run test:chaos`) everything,
 * at a night's sizes. Owns the difference; what is left to the long pass, and why it can be, stands where it is left out.
 */

export const isLong = process.env['SIGNALBOX_CHAOS_PASS'] === 'long'

/** A scenario's size: what the suite can afford, and what a night can. */
export const sized = (short: number, long: number): number => (isLong ? long : short)
