/**
 * Where a chart's boxes and arrows are: geometry only, made once at build time and stored beside the definition. What a
 * box says comes from the definition (ui/statechart/metrics.ts reads both), so the two cannot disagree. Units: px at zoom 1.
 */
import type { ChartDefinition } from '../../domain/chart.ts'

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Rect extends Point {
  readonly width: number
  readonly height: number
}

export interface PlacedState extends Rect {
  /** The id of a state of the definition. */
  readonly id: string
  /** 0 for the machine itself; deeper states are drawn later. */
  readonly depth: number
}

/** An arrow for every transition between the same two states, or from the dot that marks an initial state. */
export interface PlacedArrow {
  readonly source: string
  readonly target: string
  /** Ids of the definition's edges, in the order of the label's rows; empty for an initial arrow. */
  readonly edges: readonly string[]
  /** Orthogonal, from source to target; at least two. */
  readonly points: readonly Point[]
  readonly label?: Rect
}

export interface ChartLayout {
  readonly width: number
  readonly height: number
  /** Outermost first. */
  readonly states: readonly PlacedState[]
  /** Middles of the initial dots. */
  readonly dots: readonly Point[]
  readonly arrows: readonly PlacedArrow[]
}

/** `wide` flows to the right, `tall` downwards for a narrow pane. */
export interface ChartLayouts {
  readonly wide: ChartLayout
  readonly tall: ChartLayout
}

/** The content of `charts/<kind>@<version>.json`. */
export interface ChartFile {
  readonly definition: ChartDefinition
  readonly layout: ChartLayouts
}

/** The content of `charts/index.json`: every machine of this build. `href` is relative to the index. */
export interface ChartIndex {
  readonly charts: readonly {
    readonly kind: string
    readonly version: string
    readonly href: string
    readonly states: number
    readonly description?: string
  }[]
}
