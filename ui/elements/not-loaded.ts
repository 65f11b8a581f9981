/** What is shown where an element's code cannot be loaded (controllers/lazy.ts): in its place, or as a line beside what is there. */
import { html, nothing, type TemplateResult } from 'lit'
import type { Lazy } from '../controllers/lazy.ts'
import { icon } from './icon.ts'

/** `empty`: in a view's place. `notice`, `banner`: of a part, as a line in a view or above one. */
export const notLoaded = (kind: 'empty' | 'notice warn' | 'banner warn'): TemplateResult =>
  html`<div class=${kind} role="alert">
    ${icon('refresh-cw', kind === 'empty' ? 28 : 15)}
    <b>${kind === 'empty' ? 'This page' : 'A part of this page'} could not be loaded.</b>
    <p class="grow">The console may have been updated since this tab was opened. What you typed is kept.</p>
    <button @click=${() => location.reload()}>Reload</button>
  </div>`

/** What `draw` draws once its element's code is here; `kind`: what is shown where it cannot come, a whole view's where it is not said. */
export const whenLoaded = (
  lazy: Lazy,
  name: string,
  load: () => Promise<unknown>,
  draw: () => TemplateResult,
  kind: Parameters<typeof notLoaded>[0] = 'empty',
): TemplateResult | typeof nothing => {
  if (lazy.ready(name, load)) return draw()
  return lazy.failed(name) ? notLoaded(kind) : nothing
}
