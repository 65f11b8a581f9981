/**
 * The map of a chart that is larger than its pane. Owns its size and where it lies: in a corner where nothing is drawn that can be
 * read, and nowhere when there is none. Which part of the chart is seen is viewport.ts.
 */
import { svg, type SVGTemplateResult } from 'lit'
import { classMap } from 'lit/directives/class-map.js'
import type { ChartNode } from '../../domain/chart.ts'
import type { ChartLayout, Rect } from './layout.ts'
import { boxOf, nameOf, nameWidth, spacing } from './metrics.ts'
import type { Trace } from './trace.ts'

interface Size {
  readonly width: number
  readonly height: number
}

/** The smaller one where the larger finds no place. */
const sizesPx: readonly Size[] = [
  { width: 188, height: 110 },
  { width: 120, height: 72 },
]
const fromEdgePx = 10
const airPx = 4

const corners = ['bottom end', 'bottom start', 'top end', 'top start'] as const
export type Corner = (typeof corners)[number]

export interface Place {
  readonly corner: Corner
  readonly size: Size
  /** Pixels of the map for one of the chart. */
  readonly scale: number
}

/** What is read in a chart: its states, the names of those with others inside, the labels of its arrows. */
export function readParts(layout: ChartLayout, nodes: ReadonlyMap<string, ChartNode>): readonly Rect[] {
  const states = layout.states.map((state) => {
    const node = nodes.get(state.id)
    if (!node || node.children.length === 0) return state
    const width = nameWidth(nameOf(node)) + spacing.padding * 2
    return { x: state.x, y: state.y, width: Math.min(state.width, width), height: boxOf(node).height }
  })
  return [...states, ...layout.arrows.flatMap(({ label }) => label ?? [])]
}

function lieOf(corner: Corner, size: Size, room: Size): Rect {
  const [vertical, horizontal] = corner.split(' ')
  return {
    x: (horizontal === 'end' ? room.width - size.width - fromEdgePx : fromEdgePx) - airPx,
    y: (vertical === 'bottom' ? room.height - size.height - fromEdgePx : fromEdgePx) - airPx,
    width: size.width + airPx * 2,
    height: size.height + airPx * 2,
  }
}

const touch = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height

/**
 * Where a map of `layout` lies on nothing of `drawn`, both in the pane's pixels; null where everything is in sight anyway, or no
 * corner is free. `before`: where it lay, and stays while it can, so that it does not wander as the chart is moved.
 */
export function placeOf(layout: ChartLayout, drawn: readonly Rect[], room: Size, before: Corner | null): Place | null {
  const isWithin = ({ x, y, width, height }: Rect): boolean =>
    x >= 0 && y >= 0 && x + width <= room.width && y + height <= room.height
  if (drawn.every(isWithin)) return null
  for (const most of sizesPx) {
    const scale = Math.min(most.width / layout.width, most.height / layout.height)
    const size = { width: layout.width * scale, height: layout.height * scale }
    const order = before === null ? corners : [before, ...corners]
    const corner = order.find((each) => !drawn.some((part) => touch(part, lieOf(each, size, room))))
    if (corner !== undefined) return { corner, size, scale }
  }
  return null
}

export function drawMap(
  layout: ChartLayout,
  nodes: ReadonlyMap<string, ChartNode>,
  trace: Trace,
  seen: Rect,
): SVGTemplateResult {
  return svg`${layout.states
    .filter((state) => state.depth > 0)
    .map((state) => {
      const live = trace.active.has(state.id)
      const attention = nodes.get(state.id)?.tags.includes('attention') ?? false
      const classes = classMap({ live, leaf: trace.leaves.has(state.id), attention })
      return svg`<rect class=${classes} x=${state.x} y=${state.y} width=${state.width} height=${state.height} rx="8"></rect>`
    })}
    <rect class="window" x=${seen.x} y=${seen.y} width=${seen.width} height=${seen.height}></rect>`
}
