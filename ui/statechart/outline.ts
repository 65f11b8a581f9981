/** A chart as a nested list: the same content as the picture for those who do not see it, and for narrow panes. */
import { html, nothing, type TemplateResult } from 'lit'
import { spaced, type ChartEdge, type ChartNode } from '../../domain/chart.ts'
import { guardWords } from '../../domain/next-words.ts'
import { nameOf } from './metrics.ts'
import type { Trace } from './trace.ts'

const kinds: Record<ChartNode['kind'], string> = {
  atomic: '',
  compound: '',
  parallel: 'parallel',
  final: 'final',
  history: 'history',
}

const times = (count: number): string => (count === 1 ? 'taken once' : `taken ${count} times`)

function transition(edge: ChartEdge, nodes: ReadonlyMap<string, ChartNode>, trace: Trace): TemplateResult {
  const count = trace.counts.get(edge.id) ?? 0
  const targets = edge.targets.map((id) => spaced(nodes.get(id)?.key ?? id)).join(' and ')
  const guard =
    edge.guard === undefined ? nothing : html` <span class="if" title=${edge.guard}>if ${guardWords(edge.guard)}</span>`
  const can = trace.possible.has(edge.id)
  return html`<li class=${can ? 'can' : nothing}>
    <span class="on">${edge.label}</span>${guard}
    ${targets === '' ? 'stays here' : html`<span aria-hidden="true">→</span><span class="sr">goes to</span> ${targets}`}${count > 0 ? html`<span class="count">, ${times(count)}</span>` : nothing}${can ? html`<span class="sr">, possible now</span>` : nothing}
  </li>`
}

export function outlineOf(node: ChartNode, nodes: ReadonlyMap<string, ChartNode>, trace: Trace): TemplateResult {
  const live = trace.active.has(node.id)
  const kind = kinds[node.kind]
  return html`<ul>
    <li aria-current=${live ? 'true' : nothing} class=${trace.leaves.has(node.id) ? 'leaf' : nothing}>
      <span class="key" title=${node.key}>${nameOf(node)}</span
      >${kind === '' ? nothing : html` <span class="word">${kind}</span>`}${live ? html` <span class="word now">now</span>` : nothing}
      ${node.description === undefined ? nothing : html`<p>${node.description}</p>`}
      ${node.work.map((work) => html`<p>Work: <span class="on">${work}</span></p>`)}
      ${
        node.edges.length > 0
          ? html`<ul class="ways">
              ${node.edges.map((edge) => transition(edge, nodes, trace))}
            </ul>`
          : nothing
      }
      ${node.children.map((child) => outlineOf(child, nodes, trace))}
    </li>
  </ul>`
}
