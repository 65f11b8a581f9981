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

/**
 * The server's own sentence, but for an outage: what it must say then is of signing in (its specification's words), which a person
 * who only looks did not ask for. These are answers to reading, where 503 is the database and nothing else.
 */
const said = ({ status, message }: ApiFault): string => (status === 503 ? 'The database does not answer.' : message)

/** Inline, where the data would be. */
export const failure = (fault: ApiFault, retry: () => void): TemplateResult =>
  html`<div class="empty" role="alert">
    ${icon(fault.kind === 'unreachable' ? 'unplug' : 'triangle-alert', 28)}
    <b>${fault.kind === 'unreachable' ? 'The console does not answer' : 'This could not be loaded'}</b>
    <p>${said(fault)}</p>
    <div class="row"><button @click=${retry}>${icon('refresh-cw', 14)}Retry</button></div>
  </div>`

/** The same, as one line above data that is still shown. */
export const staleNotice = (fault: ApiFault, retry: () => void): TemplateResult =>
  html`<div class="notice warn" role="status">
    ${icon('triangle-alert', 15)}<span class="grow">Not up to date: ${said(fault)}</span
    ><button class="small" @click=${retry}>Retry</button>
  </div>`
