/**
 * Which part of a chart is seen, and how large. Owns position, zoom and the gestures that change them; redraws its host.
 * A plain wheel is left to the page, so that a chart never traps a scroll.
 */
import type { ReactiveController, ReactiveControllerHost } from 'lit'
import type { Point, Rect } from './layout.ts'

/** Below this zoom a state's 13 px name is under 10 px and stops being read. */
export const legibleZoom = 0.78
const zoomLimits = { smallest: 0.15, largest: 3, fitted: 1.15 }
const marginPx = 16
const panStepPx = 40
const zoomStep = 1.2

type Host = ReactiveControllerHost & HTMLElement

export interface View extends Point {
  readonly zoom: number
}

export class Viewport implements ReactiveController {
  readonly #host: Host
  readonly #onResize: () => void
  #view: View = { x: 0, y: 0, zoom: 1 }
  #content: { width: number; height: number } = { width: 1, height: 1 }
  /** Another chart than was shown: that parts of it are in sight where the last one stood is chance. */
  #isUnseen = true
  #drag: { readonly from: Point; readonly view: View } | undefined
  #observer: ResizeObserver | undefined

  constructor(host: Host, onResize: () => void) {
    this.#host = host
    this.#onResize = onResize
    host.addController(this)
  }

  hostConnected(): void {
    this.#observer = new ResizeObserver(() => this.#onResize())
    this.#observer.observe(this.#host)
  }

  hostDisconnected(): void {
    this.#observer?.disconnect()
  }

  get view(): View {
    return this.#view
  }

  get size(): { width: number; height: number } {
    return { width: this.#host.clientWidth, height: this.#host.clientHeight }
  }

  set content(size: { width: number; height: number }) {
    this.#content = size
    this.#isUnseen = true
  }

  /** The zoom at which all of it would be seen. */
  fittingZoom(content: { width: number; height: number }): number {
    const { width, height } = this.size
    const zoom = Math.min((width - marginPx * 2) / content.width, (height - marginPx * 2) / content.height)
    return Math.min(zoomLimits.fitted, Math.max(zoomLimits.smallest, zoom))
  }

  /** Part of the chart is outside, and there is room for a map of it. */
  get wantsOverview(): boolean {
    const { width, height } = this.size
    const { zoom } = this.#view
    return (
      width > 360 &&
      height > 200 &&
      (this.#content.width * zoom > width + 4 || this.#content.height * zoom > height + 4)
    )
  }

  /** Everything, in the middle. */
  fit(): void {
    const { width, height } = this.size
    if (width === 0 || height === 0) return
    const zoom = this.fittingZoom(this.#content)
    this.#set({ zoom, x: (width - this.#content.width * zoom) / 2, y: (height - this.#content.height * zoom) / 2 })
  }

  /**
   * Everything when that is legible, else `parts`, else only `core`, and of more than there is room for the beginning of its `frames`;
   * stays where it is when they are in sight already.
   */
  show(core: readonly Rect[], parts: readonly Rect[], frames: readonly Rect[]): void {
    const { width, height } = this.size
    if (width === 0 || height === 0) return
    const room = (rect: Rect): number => Math.min((width - 24) / rect.width, (height - 24) / rect.height)
    const whole = boundsOf([...core, ...parts])
    const around = whole && room(whole) < legibleZoom ? boundsOf(core) : whole
    if (!around || this.fittingZoom(this.#content) >= legibleZoom) return this.fit()
    const zoom = Math.max(legibleZoom, Math.min(1, room(around)))
    const mayStay = !this.#isUnseen && Math.abs(zoom - this.#view.zoom) < 0.01
    this.#isUnseen = false
    if (room(around) < legibleZoom) {
      // Any of them in sight is where somebody reads.
      if (!mayStay || !core.some((rect) => this.isInSight(rect))) this.#begin(core, boundsOf(frames) ?? around, zoom)
      return
    }
    if (mayStay && this.isInSight(around)) return
    this.centre({ x: around.x + around.width / 2, y: around.y + around.height / 2 }, zoom)
  }

  /** Of more than there is room for, its beginning: the middle of what fills many rooms is nowhere. Along the other side all of it. */
  #begin(core: readonly Rect[], around: Rect, zoom: number): void {
    const { width, height } = this.size
    const along = (start: number, length: number, firstEnd: number, room: number): number => {
      if (length * zoom <= room - marginPx * 2) return (room - length * zoom) / 2 - start * zoom
      return firstEnd * zoom <= room - marginPx * 2 ? marginPx : marginPx - start * zoom
    }
    const firstX = Math.min(...core.map((rect) => rect.x + rect.width))
    const firstY = Math.min(...core.map((rect) => rect.y + rect.height))
    const x = along(around.x, around.width, firstX, width)
    this.#set({ zoom, x, y: along(around.y, around.height, firstY, height) })
  }

  /** Brings a point of the chart into the middle, without showing more of the outside than needed. */
  centre(point: Point, zoom = this.#view.zoom): void {
    const { width, height } = this.size
    const along = (at: number, whole: number, room: number): number => {
      if (whole * zoom <= room - marginPx * 2) return (room - whole * zoom) / 2
      return Math.min(marginPx, Math.max(room - whole * zoom - marginPx, room / 2 - at * zoom))
    }
    const { width: wide, height: high } = this.#content
    this.#set({ zoom, x: along(point.x, wide, width), y: along(point.y, high, height) })
  }

  zoomBy(factor: number, around?: Point): void {
    const at = around ?? { x: this.size.width / 2, y: this.size.height / 2 }
    const { x, y, zoom } = this.#view
    const next = Math.min(zoomLimits.largest, Math.max(zoomLimits.smallest, zoom * factor))
    const ratio = next / zoom
    this.#set({ zoom: next, x: at.x - (at.x - x) * ratio, y: at.y - (at.y - y) * ratio })
  }

  zoomIn(): void {
    this.zoomBy(zoomStep)
  }

  zoomOut(): void {
    this.zoomBy(1 / zoomStep)
  }

  panBy(x: number, y: number): void {
    this.#set({ ...this.#view, x: this.#view.x + x, y: this.#view.y + y })
  }

  /** `0 + -` and arrows; true when the key was one of them. */
  handleKey(event: KeyboardEvent): boolean {
    if (event.metaKey || event.ctrlKey || event.altKey) return false
    const moves: Record<string, () => void> = {
      '+': () => this.zoomIn(),
      '=': () => this.zoomIn(),
      '-': () => this.zoomOut(),
      '0': () => this.fit(),
      ArrowLeft: () => this.panBy(panStepPx, 0),
      ArrowRight: () => this.panBy(-panStepPx, 0),
      ArrowUp: () => this.panBy(0, panStepPx),
      ArrowDown: () => this.panBy(0, -panStepPx),
    }
    const move = moves[event.key]
    move?.()
    return move !== undefined
  }

  handleWheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey) return
    event.preventDefault()
    const { left, top } = this.#host.getBoundingClientRect()
    this.zoomBy(Math.exp(-event.deltaY / 300), { x: event.clientX - left, y: event.clientY - top })
  }

  startDrag(event: PointerEvent): void {
    if (event.button !== 0 || !(event.currentTarget instanceof Element)) return
    this.#drag = { from: { x: event.clientX, y: event.clientY }, view: this.#view }
    event.currentTarget.setPointerCapture(event.pointerId)
  }

  drag(event: PointerEvent): void {
    if (!this.#drag) return
    const { from, view } = this.#drag
    this.#set({ ...view, x: view.x + event.clientX - from.x, y: view.y + event.clientY - from.y })
  }

  endDrag(): void {
    this.#drag = undefined
  }

  isInSight(rect: Rect): boolean {
    const { width, height } = this.size
    const seen = this.onScreen(rect)
    return seen.x >= 0 && seen.y >= 0 && seen.x + seen.width <= width && seen.y + seen.height <= height
  }

  /** A rectangle of the chart in the host's own pixels. */
  onScreen(rect: Rect): Rect {
    const { x, y, zoom } = this.#view
    return { x: rect.x * zoom + x, y: rect.y * zoom + y, width: rect.width * zoom, height: rect.height * zoom }
  }

  #set(view: View): void {
    const { x, y, zoom } = this.#view
    if (view.x === x && view.y === y && view.zoom === zoom) return
    this.#view = view
    this.#host.requestUpdate()
  }
}

/** The smallest rectangle around all of them, with a little air; null for none. */
function boundsOf(parts: readonly Rect[]): Rect | null {
  if (parts.length === 0) return null
  const air = 20
  const x = Math.min(...parts.map((part) => part.x)) - air
  const y = Math.min(...parts.map((part) => part.y)) - air
  const right = Math.max(...parts.map((part) => part.x + part.width)) + air
  const bottom = Math.max(...parts.map((part) => part.y + part.height)) + air
  return { x, y, width: right - x, height: bottom - y }
}
