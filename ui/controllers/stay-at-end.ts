/**
 * Keeps areas that scroll at their end while what they hold, or the room they have, changes: a reader at the end stays there. One
 * who moves up is left in peace until back at the end. Only a person moves an area up and away from its end: growing, shrinking
 * and being squeezed never do, so no input has to be listened for, and a late event of our own scrolling means nothing.
 */
import type { LitElement, ReactiveController } from 'lit'

/** Nearer to the end than this, whoever scrolls down means the end. */
const endPx = 80
/** Browsers round: less than this is no movement. */
const roundingPx = 1

interface Area {
  topPx: number
  stays: boolean
}

const restPx = ({ scrollTop, scrollHeight, clientHeight }: Element): number => scrollHeight - scrollTop - clientHeight

export class StayAtEnd implements ReactiveController {
  readonly #host: LitElement
  readonly #selector: string
  readonly #areas = new Map<Element, Area>()
  /** The areas and what they hold: what grows is the latter, and what is squeezed the former. */
  readonly #watched = new Set<Element>()
  readonly #sizes = new ResizeObserver(() => this.#keep())
  readonly #onScroll = ({ target }: Event): void => this.#scrolled(target)

  constructor(host: LitElement, selector: string) {
    this.#host = host
    this.#selector = selector
    host.addController(this)
  }

  /** Something else is shown in the same areas: from its end. */
  restart(): void {
    this.#areas.clear()
    this.#watched.clear()
    this.#sizes.disconnect()
  }

  hostConnected(): void {
    // Captured, for a scroll does not bubble, and the areas come and go.
    this.#host.renderRoot.addEventListener('scroll', this.#onScroll, { capture: true, passive: true })
    this.#host.requestUpdate()
  }

  hostUpdated(): void {
    // An update that was still pending when its host was removed observes nothing.
    if (!this.#host.isConnected) return
    const areas = [...this.#host.renderRoot.querySelectorAll(this.#selector)]
    const wanted = new Set(areas.flatMap((area) => [area, ...area.children]))
    for (const element of this.#watched) if (!wanted.has(element)) this.#leave(element)
    for (const area of areas) if (!this.#areas.has(area)) this.#areas.set(area, { topPx: 0, stays: true })
    for (const element of wanted) this.#watch(element)
  }

  hostDisconnected(): void {
    this.#host.renderRoot.removeEventListener('scroll', this.#onScroll, { capture: true })
    this.restart()
  }

  /** The observer tells of a new one at once, before the frame is painted. */
  #watch(element: Element): void {
    if (this.#watched.has(element)) return
    this.#watched.add(element)
    this.#sizes.observe(element)
  }

  #leave(element: Element): void {
    this.#watched.delete(element)
    this.#areas.delete(element)
    this.#sizes.unobserve(element)
  }

  #keep(): void {
    for (const [element, area] of this.#areas) {
      if (area.stays) element.scrollTop = element.scrollHeight
      area.topPx = element.scrollTop
    }
  }

  #scrolled(target: EventTarget | null): void {
    const area = target instanceof Element ? this.#areas.get(target) : undefined
    if (!area || !(target instanceof Element)) return
    const { scrollTop } = target
    if (scrollTop < area.topPx - roundingPx && restPx(target) > roundingPx) area.stays = false
    else if (scrollTop > area.topPx && restPx(target) < endPx) area.stays = true
    area.topPx = scrollTop
  }
}
