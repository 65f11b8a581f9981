/**
 * What a list of agents says of those that have troubles: words beside a mark; the agent's page has the rest. Owns how it looks and
 * what is asked for it, once for the whole list; the words are domain/troubles.ts.
 */
import { css, html, nothing, type TemplateResult } from 'lit'
import { TroubledAgentsAnswer, troubleWords } from '../../domain/troubles.ts'
import { icon } from '../elements/icon.ts'
import type { Question } from '../queries.ts'

export const troubledQuestion: Question<TroubledAgentsAnswer> = {
  path: '/api/troubled-agents',
  schema: TroubledAgentsAnswer,
  freshness: 'steady',
}

/** Within the link to the agent, so that it is read out with its name. */
export function troubleMark(answer: TroubledAgentsAnswer | undefined, id: string): TemplateResult | typeof nothing {
  const found = answer?.agents.find(({ agentId }) => agentId === id)
  if (!found) return nothing
  const words = troubleWords(found.troubles)
  return html`<span class="troubles tone-warn" title=${words}
    >${icon('triangle-alert', 13)}<span class="ell">${words}</span></span
  >`
}

export const agentMarksSheet = css`
  .names:has(.troubles) {
    grid-template-columns: minmax(0, 1fr);
    padding: 5px 0;
  }
  .troubles {
    display: flex;
    gap: 5px;
    align-items: center;
    min-width: 0;
    font-size: var(--sb-text-s);
  }
  /* Below the other cells there is room, where its own has next to none. */
  @container console (max-width: 720px) {
    tr:not(:has(.unread)) .troubles {
      width: max-content;
      max-width: calc(100cqw - 136px);
    }
  }
`
