/**
 * Keeps the row that is looked at in sight of the log, once each time another one comes to be looked at: a page that redraws
 * every second must not take a reader back. Owns what was shown last; which row it is says its caller.
 */

/** Further from its end than this, somebody reads in the log. */
const aboveEndPx = 40
const headPx = 28

export class RowInSight {
  #shown: string | undefined
  #readsAbove = false

  /** Before the log is drawn anew. */
  measure(pane: Element | null): void {
    this.#readsAbove = pane !== null && pane.scrollHeight - pane.scrollTop - pane.clientHeight > aboveEndPx
  }

  /** `shown`: names the row. `asked`: somebody chose it; else it came by itself, and who reads further up is left there. */
  keep(pane: HTMLElement | null, shown: string, asked: boolean): void {
    const row = pane?.querySelector<HTMLElement>('tr[aria-current], tbody tr:last-child')
    if (!pane || !row || (shown === this.#shown && !asked)) return
    const isFirst = this.#shown === undefined
    this.#shown = shown
    if (this.#readsAbove && !asked && !isFirst) return
    if (row.offsetTop < pane.scrollTop + headPx) pane.scrollTop = row.offsetTop - headPx
    const bottom = row.offsetTop + row.offsetHeight
    if (bottom > pane.scrollTop + pane.clientHeight) pane.scrollTop = bottom - pane.clientHeight
  }

  /** Another log comes. */
  forget(): void {
    this.#shown = undefined
  }
}
