/**
 * What is written into a chart's boxes and labels, and how large it is. The build lays out with these numbers and the
 * browser draws with them; both must agree without a font in sight, so widths come from a table and not from a canvas.
 */
import { spaced, type ChartEdge, type ChartNode } from '../../domain/chart.ts'
import { guardWords } from '../../domain/next-words.ts'

export const fontSize = { name: 13, row: 11, label: 11, guard: 10, kind: 10.5 } as const

/** Distances inside a box and a label. `header` holds the state's name, `row` one line under it. */
export const spacing = {
  padding: 14,
  header: 32,
  row: 18,
  belowRows: 8,
  minimumWidth: 96,
  minimumHeight: 38,
  labelRow: 19,
  guardRow: 12,
  labelPadding: 9,
  labelEdge: 4,
  glyph: 14,
  dot: 12,
} as const

/** Advance of a monospaced glyph in em: JetBrains Mono, Menlo, DejaVu and Liberation Mono all measure 0.60. */
const monoEm = 0.602

/** Advances in em of a semibold grotesque, by class: measured on Inter 600, a little generous so that fallbacks fit. */
const sansClasses: readonly (readonly [glyphs: string, em: number])[] = [
  ["ijlI.,:;'|!", 0.3],
  ['frt()[]-/ "', 0.42],
  ['mwMW@%', 0.95],
  ['ABCDEFGHJKLNOPQRSTUVXYZ&', 0.72],
]
const sansEm = new Map(sansClasses.flatMap(([glyphs, em]) => glyphs.split('').map((glyph) => [glyph, em])))
const sansDefaultEm = 0.63

/** A state's name as its box shows it; by the machine's own, which is in the tooltip, the actors are searched. */
export const nameOf = ({ key }: ChartNode): string => spaced(key)

export function nameWidth(text: string, sizePx: number = fontSize.name): number {
  let em = 0
  for (const glyph of text) em += sansEm.get(glyph) ?? sansDefaultEm
  return em * sizePx
}
export const monoWidth = (text: string, sizePx: number): number => text.length * sizePx * monoEm

/** A line inside a state's box. */
export interface StateRow {
  readonly kind: 'entry' | 'exit' | 'work' | 'on'
  readonly text: string
  /** The transition that an `on` line stands for: it changes no state, so it has no arrow. */
  readonly edge?: string
  /** Its condition by the machine's own name. */
  readonly guard?: string
}

const staying = (edge: ChartEdge): string =>
  [
    edge.label,
    edge.guard === undefined ? '' : `[${guardWords(edge.guard)}]`,
    edge.actions.length > 0 ? `/ ${edge.actions.join(', ')}` : '',
  ]
    .filter((word) => word !== '')
    .join(' ')

export function rowsOf(node: ChartNode): readonly StateRow[] {
  return [
    ...node.work.map((text): StateRow => ({ kind: 'work', text })),
    ...node.entry.map((text): StateRow => ({ kind: 'entry', text })),
    ...node.exit.map((text): StateRow => ({ kind: 'exit', text })),
    ...node.edges
      .filter((edge) => edge.targets.length === 0)
      .map((edge): StateRow => {
        const guard = edge.guard === undefined ? {} : { guard: edge.guard }
        return { kind: 'on', text: staying(edge), edge: edge.id, ...guard }
      }),
  ]
}

export const rowIndent = (row: StateRow): number => monoWidth(`${row.kind} `, fontSize.row)

/** The box of a state without what is inside it. `header` is the height that its name and lines take. */
export function boxOf(node: ChartNode): { width: number; height: number; header: number } {
  const rows = rowsOf(node)
  const beside = node.kind === 'parallel' ? 62 : node.kind === 'atomic' || node.kind === 'final' ? 13 : 0
  const widths = rows.map((row) => rowIndent(row) + monoWidth(row.text, fontSize.row))
  const width = Math.max(
    spacing.minimumWidth,
    ...[nameWidth(nameOf(node)) + beside, ...widths].map((w) => w + spacing.padding * 2),
  )
  const header = spacing.header + rows.length * spacing.row + (rows.length > 0 ? spacing.belowRows : 0)
  return { width: Math.ceil(width), height: Math.max(spacing.minimumHeight, rows.length > 0 ? header : 0), header }
}

/** Characters in a line of a condition: on one line a long one would make its label wider than the boxes that it joins. */
const guardLineLength = 30

/** A transition's condition as its label shows it; the machine's own name for it is in the tooltip. */
export function guardLines({ guard }: ChartEdge): readonly string[] {
  if (guard === undefined) return []
  const lines: string[] = []
  for (const word of `if ${guardWords(guard)}`.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > guardLineLength) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

/** One transition's lines in a label; `y` is from the label's top. */
export interface LabelRow {
  readonly edge: ChartEdge
  readonly guard: readonly string[]
  readonly y: number
}

export function labelOf(edges: readonly ChartEdge[]): { width: number; height: number; rows: readonly LabelRow[] } {
  let y: number = spacing.labelEdge
  const rows = edges.map((edge): LabelRow => {
    const row = { edge, guard: guardLines(edge), y }
    y += spacing.labelRow + row.guard.length * spacing.guardRow
    return row
  })
  const widths = rows.flatMap(({ edge, guard }) => [
    monoWidth(edge.label, fontSize.label) + (edge.kind === 'event' ? 0 : spacing.glyph),
    ...guard.map((line) => monoWidth(line, fontSize.guard)),
  ])
  return { width: Math.ceil(Math.max(0, ...widths) + spacing.labelPadding * 2), height: y + 3, rows }
}
