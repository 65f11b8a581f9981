/**
 * A chart as SVG: boxes, arrows, labels. Owns shapes and class names; colours are style.ts, which part is seen is
 * viewport.ts. Nothing carries a style attribute: a strict `style-src` would drop it.
 */
import { nothing, svg, type SVGTemplateResult } from 'lit'
import { classMap } from 'lit/directives/class-map.js'
import type { ChartEdge, ChartNode, EdgeKind } from '../../domain/chart.ts'
import type { ChartLayout, PlacedArrow, PlacedState, Point, Rect } from './layout.ts'
import {
  boxOf,
  fontSize,
  labelOf,
  monoWidth,
  nameOf,
  nameWidth,
  rowIndent,
  rowsOf,
  spacing,
  type LabelRow,
} from './metrics.ts'
import type { Trace } from './trace.ts'

const cornerPx = 6

/** An orthogonal way with rounded corners. */
export function pathAlong(points: readonly Point[]): string {
  const [start, ...rest] = points
  if (!start) return ''
  const parts = [`M${start.x} ${start.y}`]
  let from = start
  for (const [index, corner] of rest.entries()) {
    const to = rest[index + 1]
    if (!to) {
      parts.push(`L${corner.x} ${corner.y}`)
      break
    }
    const radius = Math.min(cornerPx, distance(from, corner) / 2, distance(corner, to) / 2)
    const [enter, leave] = [towards(corner, from, radius), towards(corner, to, radius)]
    parts.push(`L${enter.x} ${enter.y}Q${corner.x} ${corner.y} ${leave.x} ${leave.y}`)
    from = corner
  }
  return parts.join('')
}

const distance = (a: Point, b: Point): number => Math.hypot(b.x - a.x, b.y - a.y)

/** The point `length` away from `from`, in the direction of `to`. */
function towards(from: Point, to: Point, length: number): Point {
  const whole = distance(from, to) || 1
  return { x: from.x + ((to.x - from.x) / whole) * length, y: from.y + ((to.y - from.y) / whole) * length }
}

/** One path a symbol, in a 10 px square; the word beside it says the same, so it is decoration. */
const glyphs: Partial<Record<EdgeKind, string>> = {
  after: 'M5 1.1a4.4 4.4 0 1 0 .01 0M5 3v2.7l1.8 1',
  done: 'M.8 5.8l2.8 2.8L9.4 2.4',
  error: 'M1.5 2l7 7M8.5 2l-7 7',
  always: 'M5.8 1L2 6.2h3L4.2 10 8 4.8H5z',
  wildcard: 'M5 1.5v8M1.5 3.5l7 4M8.5 3.5l-7 4',
}

export function drawState(node: ChartNode, at: PlacedState, trace: Trace): SVGTemplateResult {
  const live = trace.active.has(node.id)
  const leaf = trace.leaves.has(node.id)
  const classes = classMap({
    state: true,
    live,
    leaf,
    seen: trace.seen.has(node.id),
    machine: at.depth === 0,
    group: node.children.length > 0,
    final: node.kind === 'final',
    attention: node.tags.includes('attention'),
  })
  const left = at.x + spacing.padding + (leaf ? 13 : 0)
  const right = left + nameWidth(nameOf(node)) + 8
  return svg`<g class=${classes}>
    <title>${node.description === undefined ? node.key : `${node.key}: ${node.description}`}</title>
    <rect class="box" x=${at.x} y=${at.y} width=${at.width} height=${at.height} rx=${at.depth === 0 ? 12 : 8}></rect>
    ${node.kind === 'final' ? svg`<rect class="inner" x=${at.x + 3} y=${at.y + 3} width=${at.width - 6} height=${at.height - 6} rx="5.5"></rect>` : nothing}
    ${leaf ? svg`<circle class="dot" cx=${at.x + 17} cy=${at.y + 19} r="4"></circle>` : nothing}
    <text class="name" x=${left} y=${at.y + 23.5} font-size=${fontSize.name}>${nameOf(node)}</text>
    ${node.kind === 'parallel' ? svg`<text class="kind" x=${right} y=${at.y + 23.5} font-size=${fontSize.kind}>parallel</text>` : nothing}
    ${node.kind === 'history' ? svg`<text class="kind" x=${right} y=${at.y + 23.5} font-size=${fontSize.kind}>history</text>` : nothing}
    ${drawRows(node, at, trace)}
  </g>`
}

/** A region's box is drawn dashed; the definition does not say of a node that its parent is parallel. */
export const drawLane = (lane: SVGTemplateResult): SVGTemplateResult => svg`<g class="lane">${lane}</g>`

function drawRows(node: ChartNode, at: Point, trace: Trace): SVGTemplateResult[] {
  const x = at.x + spacing.padding
  return rowsOf(node).map((row, index) => {
    const y = at.y + spacing.header + 13 + index * spacing.row
    const hot = row.edge !== undefined && trace.last.has(row.edge)
    const taken = row.edge === undefined ? 0 : (trace.counts.get(row.edge) ?? 0)
    const classes = classMap({ row: true, hot, work: row.kind === 'work' })
    const times = x + rowIndent(row) + monoWidth(row.text, fontSize.row) + 4
    return svg`<g class=${classes}>
      <text class="what" x=${x} y=${y} font-size=${fontSize.row}>${row.kind}</text>
      <text class="which" x=${x + rowIndent(row)} y=${y} font-size=${fontSize.row}>${row.guard === undefined ? nothing : svg`<title>${row.guard}</title>`}${row.text}</text>
      ${taken > 1 ? drawBadge({ x: times, y: y - 11 }, taken) : nothing}
    </g>`
  })
}

const timesTaken = (edges: readonly ChartEdge[], trace: Trace): number =>
  edges.reduce((sum, edge) => sum + (trace.counts.get(edge.id) ?? 0), 0)

const arrowClasses = (edges: readonly ChartEdge[], trace: Trace) =>
  classMap({
    arrow: true,
    initial: edges.length === 0,
    taken: timesTaken(edges, trace) > 0,
    possible: edges.some((edge) => trace.possible.has(edge.id)),
    last: edges.some((edge) => trace.last.has(edge.id)),
  })

export function drawArrow(arrow: PlacedArrow, edges: readonly ChartEdge[], trace: Trace): SVGTemplateResult {
  const initial = edges.length === 0
  const [before, tip] = [arrow.points.at(-2), arrow.points.at(-1)]
  if (!before || !tip) return svg``
  const head = { length: initial ? 6 : 8, half: initial ? 3 : 4 }
  // The line ends inside the head, so that a thick one does not show beside the tip.
  const way = [...arrow.points.slice(0, -1), towards(tip, before, head.length - 1)]
  return svg`<g class=${arrowClasses(edges, trace)}>
    <path class="line" d=${pathAlong(way)}></path>
    <path class="tip" d=${headAt(tip, towards(tip, before, head.length), head.half)}></path>
  </g>`
}

/** Apart from its line: labels are drawn above every line. */
export const drawArrowLabel = (
  { label }: PlacedArrow,
  edges: readonly ChartEdge[],
  trace: Trace,
): SVGTemplateResult | typeof nothing =>
  label === undefined
    ? nothing
    : svg`<g class=${arrowClasses(edges, trace)}>${drawLabel(label, edges, timesTaken(edges, trace), trace)}</g>`

function headAt(tip: Point, base: Point, half: number): string {
  const length = distance(tip, base) || 1
  const [x, y] = [(-(tip.y - base.y) / length) * half, ((tip.x - base.x) / length) * half]
  return `M${tip.x} ${tip.y}L${base.x + x} ${base.y + y}L${base.x - x} ${base.y - y}Z`
}

function drawLabel(label: Rect, edges: readonly ChartEdge[], taken: number, trace: Trace): SVGTemplateResult {
  return svg`<rect class="pill" x=${label.x} y=${label.y} width=${label.width} height=${label.height} rx="6"></rect>
    ${labelOf(edges).rows.map((row) => drawLabelRow(label, row, trace))}
    ${taken > 1 ? drawBadge({ x: label.x + label.width - 12, y: label.y - 8 }, taken) : nothing}`
}

function drawLabelRow(label: Point, { edge, guard, y }: LabelRow, trace: Trace): SVGTemplateResult {
  const [left, top] = [label.x + spacing.labelPadding, label.y + y]
  const glyph = glyphs[edge.kind]
  const classes = classMap({
    label: true,
    last: trace.last.has(edge.id),
    taken: trace.counts.has(edge.id),
    possible: trace.possible.has(edge.id),
  })
  return svg`<g class=${classes}>
    ${glyph === undefined ? nothing : svg`<path class="glyph" transform=${`translate(${left - 1} ${top + 4})`} d=${glyph}></path>`}
    <text class="event" x=${left + (edge.kind === 'event' ? 0 : spacing.glyph)} y=${top + 13} font-size=${fontSize.label}>${edge.label}</text>
    ${guard.map(
      (line, index) =>
        svg`<text class="guard" x=${left} y=${top + 25.5 + index * spacing.guardRow} font-size=${fontSize.guard}><title>${edge.guard}</title>${line}</text>`,
    )}
  </g>`
}

/** `3×`: how often a transition was taken. */
function drawBadge(at: Point, times: number): SVGTemplateResult {
  const text = `${times}×`
  const width = Math.max(20, monoWidth(text, 9.5) + 8)
  return svg`<rect class="badge" x=${at.x} y=${at.y} width=${width} height="15" rx="7.5"></rect>
    <text class="times" x=${at.x + width / 2} y=${at.y + 11} text-anchor="middle" font-size="9.5">${text}</text>`
}

export const drawDot = ({ x, y }: Point): SVGTemplateResult =>
  svg`<circle class="start" cx=${x} cy=${y} r=${spacing.dot / 2 - 1}></circle>`

/** What the eye must find: `leaves`, where the actor is, `ways`, the labels of what brought it there, and `frames`, what the leaves are in. */
export interface Living {
  readonly leaves: readonly Rect[]
  readonly ways: readonly Rect[]
  readonly frames: readonly Rect[]
}

export function livingParts(layout: ChartLayout, nodes: ReadonlyMap<string, ChartNode>, trace: Trace): Living {
  const leaves = layout.states
    .filter((state) => trace.leaves.has(state.id))
    .map((state) => {
      const node = nodes.get(state.id)
      return node && node.children.length > 0 ? { ...state, height: boxOf(node).height } : state
    })
  const ways = layout.arrows.flatMap((arrow) =>
    arrow.label && arrow.edges.some((id) => trace.last.has(id)) ? [arrow.label] : [],
  )
  const frames = layout.states.filter(({ id }) => nodes.get(id)?.children.some((child) => trace.leaves.has(child.id)))
  return { leaves, ways, frames }
}
