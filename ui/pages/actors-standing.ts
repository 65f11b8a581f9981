/** How something stands, as a mark: an icon, words and a tone, so that a colour never stands alone. */
import { html, type TemplateResult } from 'lit'
import type { Standing } from '../../domain/queue-words.ts'
import { icon, type IconName } from '../elements/icon.ts'

const icons: Record<Standing['tone'], IconName> = {
  ok: 'circle-check',
  quiet: 'circle-dot',
  warn: 'triangle-alert',
  bad: 'circle-x',
}

export const standingMark = ({ tone, words }: Standing): TemplateResult =>
  html`<span class="standing ${tone === 'quiet' ? 'muted' : `tone-${tone}`}">${icon(icons[tone], 13)}${words}</span>`
