/**
 * `<signalbox-not-there>`: what is shown at an address where there is nothing: that it is so, once, and the way on. Nothing can be done
 * with it, so nothing else is offered. Fills the view that it is in.
 */
import { css, html, LitElement, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { App } from '../app.ts'
import { icon } from './icon.ts'
import { sheet } from './sheet.ts'
import { define } from './view.ts'

/** @element signalbox-not-there */
class SignalboxNotThere extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false }, what: {}, why: {}, path: {}, way: {} }
  static override styles = [
    sheet,
    css`
      :host {
        display: block;
        height: 100%;
        grid-row: 1 / -1;
      }
    `,
  ]
  declare app: App
  /** Of what there is none: a page, unless somebody says what. */
  declare what: string
  /** What may have become of it. */
  declare why: string
  /** Where the only link leads, and its words. */
  declare path: string
  declare way: string

  constructor() {
    super()
    this.what = 'page'
    this.why = 'The address may be old or mistyped.'
    this.path = '/tasks'
    this.way = 'Go to Tasks'
  }

  override render(): TemplateResult {
    return html`<div class="empty">
      ${icon('circle-help', 28)}
      <h1><b>There is no such ${this.what}</b></h1>
      <p>${this.why}</p>
      <div class="row">
        <a class="button" href=${this.app.router.href(this.path)} data-route=${this.path}>${this.way}</a>
      </div>
    </div>`
  }
}

define('signalbox-not-there', SignalboxNotThere)

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-not-there': SignalboxNotThere
  }
}
