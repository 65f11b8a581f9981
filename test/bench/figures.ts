/** Numbers for people: percentiles, medians over rounds with their spread, and tables. Does not measure anything. */

/** A monotonic clock that all processes of one machine share, milliseconds. */
export const sharedClock = (): number => Number(process.hrtime.bigint()) / 1e6

export function percentile(samples: readonly number[], part: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

/** Of an even number, between the two in the middle: with two rounds the better one must not stand for both. */
export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const half = (sorted.length - 1) / 2
  return ((sorted[Math.floor(half)] ?? Number.NaN) + (sorted[Math.ceil(half)] ?? Number.NaN)) / 2
}

/** What a set of rounds says of one subject: the middle round, and how far the others lie from it. */
export interface Spread {
  readonly middle: number
  readonly least: number
  readonly most: number
}

export const spreadOf = (rounds: readonly number[]): Spread => ({
  middle: median(rounds),
  least: Math.min(...rounds),
  most: Math.max(...rounds),
})

const short = (value: number): string =>
  !Number.isFinite(value) ? '–' : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

/** `412 (390–440)`: the middle round and the range of all. */
export function withSpread(rounds: readonly number[]): string {
  const { middle, least, most } = spreadOf(rounds)
  return rounds.length === 1 ? short(middle) : `${short(middle)} (${short(least)}–${short(most)})`
}

/** How the rounds of two subjects compare, round by round: neighbours in time share the machine's noise. */
export const ratiosOf = (mine: readonly number[], base: readonly number[]): number[] =>
  mine.map((value, round) => value / (base[round] ?? Number.NaN))

export const ratioOf = (mine: readonly number[], base: readonly number[]): string => withSpread(ratiosOf(mine, base))

export const figure = short

/** A Markdown table, columns padded so that it reads well on a terminal too. */
export function table(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  return [
    `\n## ${title}\n`,
    line(head),
    `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`,
    ...rows.map(line),
    '',
  ].join('\n')
}
