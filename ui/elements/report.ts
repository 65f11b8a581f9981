/** A compliance report in words: the score, then what was found, worst first. Judging a card is the server's. */
import { html, nothing, svg, type TemplateResult } from 'lit'
import type { ComplianceReport } from '../../domain/agent.ts'
import { plural } from '../format.ts'
import type { Tone } from '../states.ts'
import { icon, type IconName } from './icon.ts'

type Severity = ComplianceReport['issues'][number]['severity']

const severities: readonly { id: Severity; word: string; icon: IconName; tone: Tone }[] = [
  { id: 'error', word: 'error', icon: 'circle-x', tone: 'bad' },
  { id: 'warning', word: 'warning', icon: 'triangle-alert', tone: 'warn' },
  { id: 'info', word: 'note', icon: 'info', tone: 'info' },
]

export const toneOfScore = (score: number): Tone => (score >= 90 ? 'ok' : score >= 60 ? 'warn' : 'bad')

/** Widths are presentation attributes: an inline style would break the CSP. */
export const scoreBar = (score: number): TemplateResult =>
  html`<span class="score tone-${toneOfScore(score)}" title=${`Compliance score ${score} of 100`}
    ><svg viewBox="0 0 60 4" width="60" height="4" aria-hidden="true">
      ${svg`<rect width="60" height="4" rx="2" class="track"></rect><rect width=${score * 0.6} height="4" rx="2" fill="currentColor"></rect>`}
    </svg>
    <span class="num value"><span class="sr">Compliance score </span>${score}</span></span
  >`

export const versionWords = (version: ComplianceReport['version']): string =>
  version === 'unknown' ? 'A2A version unknown' : `A2A ${version}`

export function reportView(report: ComplianceReport): TemplateResult {
  const found = severities.filter(({ id }) => report.counts[id] > 0)
  return html`<div class="report">
    <p class="row">
      ${scoreBar(report.score)}
      <span class="muted"
        >${versionWords(report.version)} ·
        ${
          found.length === 0
            ? 'nothing to object to'
            : found.map(({ id, word }) => plural(report.counts[id], word)).join(', ')
        }</span
      >
    </p>
    ${found.map(
      ({ id, word, icon: name, tone }) =>
        html`<section>
          <h3 class="row tone-${tone}">${icon(name, 14)}<b>${plural(report.counts[id], word)}</b></h3>
          <ul>
            ${report.issues
              .filter((issue) => issue.severity === id)
              .map(
                (issue) =>
                  html`<li>
                    <p><bdi>${issue.message}</bdi></p>
                    <p class="mono faint">
                      <bdi>${issue.path || 'card'}</bdi>${issue.spec ? html` · <bdi>${issue.spec}</bdi>` : nothing}
                    </p>
                  </li>`,
              )}
          </ul>
        </section>`,
    )}
    ${
      report.passed.length > 0
        ? html`<details>
            <summary class="muted">${plural(report.passed.length, 'check')} passed</summary>
            <p class="mono faint passed">${report.passed.join('  ')}</p>
          </details>`
        : nothing
    }
  </div>`
}
