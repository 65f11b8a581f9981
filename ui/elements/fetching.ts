/** What a view shows instead of its data: rows to come, or why there are none. Text for "empty" is the view's own. */
import { html, type TemplateResult } from 'lit'
import type { ApiFault } from '../api.ts'
import { icon } from './icon.ts'

/** Rows of about the height of the real ones, so that nothing jumps when they arrive. */
export const skeleton = (rows: number, kind: 'list' | 'page' = 'list'): TemplateResult =>
  html`<div class="skeleton ${kind}" aria-hidden="true">
      ${Array.from({ length: rows }, () => html`<div class="bars"><i></i><i></i></div>`)}
    </div>
    <p class="sr" role="status">Loading</p>`

/** Inline, where the data would be. */
export const failure = (fault: ApiFault, retry: () => void): TemplateResult =>
  html`<div class="empty" role="alert">
    ${icon(fault.kind === 'unreachable' ? 'unplug' : 'triangle-alert', 28)}
    <b>${fault.kind === 'unreachable' ? 'The console does not answer' : 'This could not be loaded'}</b>
    <p>${fault.message}</p>
    <div class="row"><button @click=${retry}>${icon('refresh-cw', 14)}Retry</button></div>
  </div>`

/** The same, as one line above data that is still shown. */
export const staleNotice = (fault: ApiFault, retry: () => void, asOf = ''): TemplateResult =>
  html`<div class="notice warn" role="status">
    ${icon('triangle-alert', 15)}<span class="grow"
      >Not up to date: ${fault.message}${asOf && ` What is shown is as of ${asOf}.`}</span
    ><button class="small" @click=${retry}>Retry</button>
  </div>`
