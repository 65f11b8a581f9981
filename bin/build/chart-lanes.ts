/**
 * Regions of a parallel state as lanes: in the order in which the machine lists them, with common outer edges. ELK places
 * them as it likes (neither its position nor its in-layer options reach nested, unconnected nodes in 0.12), so the
 * finished layout is rearranged: a lane moves as a whole, with everything in it.
 */
import { statesOf, type ChartDefinition, type ChartNode } from '../../domain/chart.ts'
import type { ChartLayout, PlacedArrow, PlacedState, Point } from '../../ui/statechart/layout.ts'

type Axis = 'x' | 'y'
const sizeAlong = { x: 'width', y: 'height' } as const
const otherAxis = { x: 'y', y: 'x' } as const

export function withLanes(definition: ChartDefinition, layout: ChartLayout): ChartLayout {
  return [...statesOf(definition.root)]
    .filter((node) => node.kind === 'parallel')
    .reduce((arranged, node) => arrangeLanes(node, arranged), layout)
}

function arrangeLanes(parallel: ChartNode, layout: ChartLayout): ChartLayout {
  const lanes = parallel.children.flatMap((child) => layout.states.find((state) => state.id === child.id) ?? [])
  const axis = (['y', 'x'] as const).find((candidate) => areApart(lanes, candidate))
  if (axis === undefined) return layout
  const laneOf = new Map(parallel.children.flatMap((lane) => [...statesOf(lane)].map((inner) => [inner.id, lane.id])))
  const isClosed = layout.arrows.every((arrow) => laneOf.get(arrow.source) === laneOf.get(arrow.target))
  return withCommonEdges(isClosed ? reordered(layout, lanes, laneOf, axis) : layout, lanes, axis)
}

/** No two overlap along the axis: they can be exchanged along it. */
function areApart(lanes: readonly PlacedState[], axis: Axis): boolean {
  const sorted = lanes.toSorted((a, b) => a[axis] - b[axis])
  return sorted.every((lane, index) => {
    const before = sorted[index - 1]
    return before === undefined || lane[axis] >= before[axis] + before[sizeAlong[axis]]
  })
}

/** Lays the lanes out one after another in the machine's order, within the span that they take now. */
function reordered(
  layout: ChartLayout,
  lanes: readonly PlacedState[],
  laneOf: ReadonlyMap<string, string>,
  axis: Axis,
): ChartLayout {
  const size = sizeAlong[axis]
  const start = Math.min(...lanes.map((lane) => lane[axis]))
  const end = Math.max(...lanes.map((lane) => lane[axis] + lane[size]))
  const filled = lanes.reduce((sum, lane) => sum + lane[size], 0)
  const gap = lanes.length > 1 ? (end - start - filled) / (lanes.length - 1) : 0
  const shifts = new Map<string, number>()
  let at = start
  for (const lane of lanes) {
    shifts.set(lane.id, at - lane[axis])
    at += lane[size] + gap
  }
  const shiftOf = (state: string): number => shifts.get(laneOf.get(state) ?? '') ?? 0
  // A dot has no name; it belongs to the lane it lies in.
  const around = (dot: Point): string =>
    lanes.find(
      (lane) => dot.x > lane.x && dot.x < lane.x + lane.width && dot.y > lane.y && dot.y < lane.y + lane.height,
    )?.id ?? ''
  return {
    ...layout,
    states: layout.states.map((state) => moved(state, axis, shiftOf(state.id))),
    dots: layout.dots.map((dot) => moved(dot, axis, shifts.get(around(dot)) ?? 0)),
    arrows: layout.arrows.map((arrow) => movedArrow(arrow, axis, shiftOf(arrow.source))),
  }
}

const moved = <P extends Point>(point: P, axis: Axis, by: number): P =>
  by === 0 ? point : { ...point, [axis]: point[axis] + by }

const movedArrow = (arrow: PlacedArrow, axis: Axis, by: number): PlacedArrow => ({
  ...arrow,
  points: arrow.points.map((point) => moved(point, axis, by)),
  ...(arrow.label ? { label: moved(arrow.label, axis, by) } : {}),
})

/** All lanes begin and end where the outermost of them does, across the axis they follow each other on. */
function withCommonEdges(layout: ChartLayout, lanes: readonly PlacedState[], axis: Axis): ChartLayout {
  const across = otherAxis[axis]
  const size = sizeAlong[across]
  const start = Math.min(...lanes.map((lane) => lane[across]))
  const end = Math.max(...lanes.map((lane) => lane[across] + lane[size]))
  const ids = new Set(lanes.map((lane) => lane.id))
  const states = layout.states.map((state) =>
    ids.has(state.id) ? { ...state, [across]: start, [size]: end - start } : state,
  )
  return { ...layout, states }
}
