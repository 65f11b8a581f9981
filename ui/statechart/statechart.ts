/**
 * `<signalbox-statechart>`: an actor on its machine's chart. Owns what is shown and said; knows no server. The picture is
 * hidden from assistive technology and the same content follows as an outline, because a list can be read and 30 boxes cannot.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import {
  describeEvent,
  pathsOf,
  pathWords,
  statesOf,
  type ActorStep,
  type ChartDefinition,
  type ChartEdge,
  type ChartNode,
  type StateValue,
} from '../../domain/chart.ts'
import { drawArrow, drawArrowLabel, drawDot, drawLane, drawState, livingParts } from './drawing.ts'
import type { ChartLayout, ChartLayouts } from './layout.ts'
import { mermaidOf } from './mermaid.ts'
import { outlineOf } from './outline.ts'
import { drawMap, placeOf, readParts, type Place } from './overview.ts'
import { chartStyle } from './style.ts'
import { traceOf, type Trace } from './trace.ts'
import { Viewport } from './viewport.ts'

/** By what it says: each answer of a server is another object. */
const isElsewhere = (value: StateValue | null, before: StateValue | null | undefined): boolean =>
  JSON.stringify(value) !== JSON.stringify(before)

const wordsOf = (value: StateValue | null): string =>
  value === null ? 'nowhere yet' : pathsOf(value).map(pathWords).join(' and ')

/**
 * A read-only statechart with one actor on it.
 *
 * @element signalbox-statechart
 * @prop definition - the machine (domain/chart.ts)
 * @prop layout - both orientations of its geometry; the one that fits is taken
 * @prop steps - the actor's log, oldest first; may be empty
 * @prop position - index into `steps`; -1 looks at `value`, where the actor is now
 * @prop value - the actor's present value; null draws the machine alone
 * @attr wandered - the actor moved since its last step, so no step shows how it came to be where it is now
 * @attr outline - shows the outline instead of the picture
 */
export class SignalboxStatechart extends LitElement {
  static override styles = chartStyle
  static override properties: PropertyDeclarations = {
    definition: { attribute: false },
    layout: { attribute: false },
    steps: { attribute: false },
    // The same place told again is no move: the view stays where somebody took it.
    value: { attribute: false, hasChanged: isElsewhere },
    position: { type: Number },
    wandered: { type: Boolean },
    outline: { type: Boolean, reflect: true },
  }
  declare definition: ChartDefinition | undefined
  declare layout: ChartLayouts | undefined
  declare steps: readonly ActorStep[]
  declare value: StateValue | null
  declare position: number
  declare wandered: boolean
  declare outline: boolean

  readonly #viewport = new Viewport(this, () => this.#arrange())
  #nodes: ReadonlyMap<string, ChartNode> = new Map()
  #edges: ReadonlyMap<string, ChartEdge> = new Map()
  #lanes: ReadonlySet<string> = new Set()
  #trace: Trace | undefined
  #shown: ChartLayout | undefined
  #map: Place | null = null
  #mapHeld = false

  constructor() {
    super()
    this.steps = []
    this.value = null
    this.position = -1
    this.wandered = false
    this.outline = false
  }

  zoomIn(): void {
    this.#viewport.zoomIn()
  }

  zoomOut(): void {
    this.#viewport.zoomOut()
  }

  showEverything(): void {
    this.#viewport.fit()
  }

  /** Keys that the chart answers wherever the focus is; true when it was one. */
  handleKey(event: KeyboardEvent): boolean {
    return this.#viewport.handleKey(event)
  }

  /** The machine as Mermaid text; empty without a definition. */
  get mermaid(): string {
    return this.definition ? mermaidOf(this.definition) : ''
  }

  override willUpdate(changed: PropertyValues<this>): void {
    const { definition } = this
    if (!definition) return
    if (changed.has('definition')) {
      const nodes = [...statesOf(definition.root)]
      this.#nodes = new Map(nodes.map((node) => [node.id, node]))
      this.#edges = new Map(nodes.flatMap((node) => node.edges.map((edge) => [edge.id, edge])))
      const lanes = nodes.filter((node) => node.kind === 'parallel').flatMap((node) => node.children)
      this.#lanes = new Set(lanes.map((node) => node.id))
    }
    const looking = this.#step
    const upTo = this.position < 0 ? this.steps : this.steps.slice(0, this.position + 1)
    const value = this.position < 0 ? this.value : (looking?.value ?? null)
    this.#trace = traceOf(definition, upTo, value, this.#isWandered ? undefined : upTo.at(-1))
  }

  override updated(changed: PropertyValues<this>): void {
    if (changed.has('layout') || changed.has('value') || changed.has('steps') || changed.has('position'))
      this.#arrange()
  }

  override render(): TemplateResult {
    const { definition } = this
    const trace = this.#trace
    if (!definition || !trace) return html`<slot><p class="waiting" role="status">Loading the chart…</p></slot>`
    return html`
      ${this.#shown && !this.outline ? this.#picture(definition, this.#shown, trace) : nothing}
      <div
        class=${this.outline ? 'outline' : 'sr'}
        role="region"
        aria-label=${`${definition.id} as an outline`}
        tabindex=${this.outline ? 0 : nothing}
      >
        ${outlineOf(definition.root, this.#nodes, trace)}
      </div>
      <p class="sr" role="status">${this.#announcement()}</p>
    `
  }

  get #step(): ActorStep | undefined {
    return this.position < 0 ? this.steps.at(-1) : this.steps[this.position]
  }

  get #isWandered(): boolean {
    return this.position < 0 && this.wandered
  }

  #announcement(): string {
    const step = this.#step
    // Rounds that it goes by itself are not told one by one.
    if (!step || this.#isWandered) return ''
    const value = this.position < 0 ? this.value : step.value
    return `Step ${step.revision}: ${describeEvent(step.event.type).label}. Now in ${wordsOf(value)}.`
  }

  #picture(definition: ChartDefinition, layout: ChartLayout, trace: Trace): TemplateResult {
    const { x, y, zoom } = this.#viewport.view
    const now = wordsOf(this.position < 0 ? this.value : (this.#step?.value ?? null))
    const arrows = layout.arrows.map((arrow, at) => {
      const edges = arrow.edges.flatMap((id) => this.#edges.get(id) ?? [])
      const last = edges.some((edge) => trace.last.has(edge.id))
      // The latest are made anew by each step: their motion has an end, and begins with them.
      const key = last ? `${at} ${this.#step?.revision}` : at
      return { key, line: drawArrow(arrow, edges, trace), label: drawArrowLabel(arrow, edges, trace), last }
    })
    // No line crosses a label, and what brought the actor where it is lies above the rest.
    const [others, latest] = [arrows.filter(({ last }) => !last), arrows.filter(({ last }) => last)]
    const inOrder = [...others, ...latest]
    return html`<svg
        class="canvas"
        tabindex="0"
        role="group"
        aria-label=${`Statechart of ${definition.id}. Current state: ${now}. Plus, minus, zero and the arrow keys move the view; the same content follows as an outline.`}
        @wheel=${(event: WheelEvent) => this.#viewport.handleWheel(event)}
        @pointerdown=${(event: PointerEvent) => this.#viewport.startDrag(event)}
        @pointermove=${(event: PointerEvent) => this.#viewport.drag(event)}
        @pointerup=${() => this.#viewport.endDrag()}
        @pointercancel=${() => this.#viewport.endDrag()}
        @keydown=${this.#key}
      >
        <g transform=${`translate(${x} ${y}) scale(${zoom})`} aria-hidden="true">
          ${this.#states(layout, trace)}
          ${repeat(
            inOrder,
            ({ key }) => key,
            ({ line }) => line,
          )}
          ${layout.dots.map(drawDot)} ${inOrder.map(({ label }) => label)}
        </g>
      </svg>
      ${this.#viewport.wantsOverview ? this.#overview(layout, trace) : nothing}`
  }

  #states(layout: ChartLayout, trace: Trace): readonly TemplateResult<2>[] {
    return layout.states.flatMap((placed) => {
      const node = this.#nodes.get(placed.id)
      if (!node) return []
      const drawn = drawState(node, placed, trace)
      return this.#lanes.has(node.id) ? drawLane(drawn) : drawn
    })
  }

  #overview(layout: ChartLayout, trace: Trace): TemplateResult | typeof nothing {
    const drawn = readParts(layout, this.#nodes).map((part) => this.#viewport.onScreen(part))
    // Under a finger that moves it, it stays.
    if (!this.#mapHeld) this.#map = placeOf(layout, drawn, this.#viewport.size, this.#map?.corner ?? null)
    const map = this.#map
    if (!map) return nothing
    const { x, y, zoom } = this.#viewport.view
    const { width, height } = this.#viewport.size
    const look = (event: PointerEvent): void => {
      if (event.buttons !== 1 || !(event.currentTarget instanceof Element)) return
      const { left, top } = event.currentTarget.getBoundingClientRect()
      this.#viewport.centre({ x: (event.clientX - left) / map.scale, y: (event.clientY - top) / map.scale })
    }
    const hold = (event: PointerEvent): void => {
      if (event.currentTarget instanceof Element) event.currentTarget.setPointerCapture(event.pointerId)
      this.#mapHeld = true
      look(event)
    }
    const letGo = (): void => {
      this.#mapHeld = false
      this.requestUpdate()
    }
    return html`<svg
      class=${`overview ${map.corner}`}
      width=${map.size.width}
      height=${map.size.height}
      viewBox=${`0 0 ${layout.width} ${layout.height}`}
      aria-hidden="true"
      @pointerdown=${hold}
      @pointermove=${look}
      @pointerup=${letGo}
      @pointercancel=${letGo}
    >
      ${drawMap(layout, this.#nodes, trace, { x: -x / zoom, y: -y / zoom, width: width / zoom, height: height / zoom })}
    </svg>`
  }

  readonly #key = (event: KeyboardEvent): void => {
    if (!this.#viewport.handleKey(event)) return
    event.preventDefault()
    event.stopPropagation()
  }

  /** Takes the orientation that shows more of the chart, and brings the live states into sight. */
  #arrange(): void {
    const { layout } = this
    if (!layout || this.#viewport.size.width === 0) return
    const [wide, tall] = [layout.wide, layout.tall].map((candidate) => this.#viewport.fittingZoom(candidate))
    const chosen = (tall ?? 0) > (wide ?? 0) * 1.1 ? layout.tall : layout.wide
    if (chosen !== this.#shown) {
      this.#shown = chosen
      this.#viewport.content = chosen
      this.requestUpdate()
    }
    const living = this.#trace && livingParts(chosen, this.#nodes, this.#trace)
    this.#viewport.show(living?.leaves ?? [], living?.ways ?? [], living?.frames ?? [])
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-statechart': SignalboxStatechart
  }
}
