/** Draws an icon inline. Owns size and stroke; the drawings are generated (icons.ts). */
import { html, nothing, type SVGTemplateResult, type TemplateResult } from 'lit'
import { drawings, type IconName } from './icons.ts'

export type { IconName }

/** By its name, or the drawing itself where a page brings its own. */
export type Icon = IconName | SVGTemplateResult

/** Decorative unless `label` is given. `size` in CSS pixels; small icons get a heavier stroke so that they stay legible. */
export const icon = (drawn: Icon, size = 16, label?: string): TemplateResult =>
  html`<svg
    class="icon"
    viewBox="0 0 24 24"
    width=${size}
    height=${size}
    fill="none"
    stroke="currentColor"
    stroke-width=${size <= 14 ? 2.1 : 1.8}
    stroke-linecap="round"
    stroke-linejoin="round"
    role=${label ? 'img' : nothing}
    aria-label=${label ?? nothing}
    aria-hidden=${label ? nothing : 'true'}
  >
    ${typeof drawn === 'string' ? drawings[drawn] : drawn}
  </svg>`
