/** The log of an actor, as a bar to move through it and a table to read it. Draws; what is looked at is its caller's. */
import { html, nothing, type TemplateResult } from 'lit'
import { describeEvent, pathsOf, spaced, type ActorStep, type StateValue } from '../../domain/chart.ts'
import { icon } from '../elements/icon.ts'
import { type Format, plural } from '../format.ts'
import { actorsDrawings } from './actors-icons.ts'

export interface Replay {
  readonly steps: readonly ActorStep[]
  /** Index into `steps` of the one that is looked at; one after the last where the present is. */
  readonly at: number
  /** The actor's revision where it stands further than its last step: what came after was not kept. */
  readonly now: number | null
  readonly live: boolean
  readonly hasEarlier: boolean
  readonly reading: boolean
  readonly format: Format
  readonly look: (index: number) => void
  readonly goLive: () => void
  readonly readEarlier: () => void
}

/** The same as a person reads it; the machine's own names are the cell's title. */
const leafWords = (value: StateValue): string =>
  pathsOf(value)
    .map((path) => spaced(path.at(-1) ?? ''))
    .join(' + ')

/** `waiting + ticking`: the innermost state of every region. */
export const leavesOf = (value: StateValue): string =>
  pathsOf(value)
    .map((path) => path.at(-1) ?? '')
    .join(' + ')

const stepWords = (step: ActorStep): string => `Step ${step.revision}, ${describeEvent(step.event.type).label}`

export function replayBar(replay: Replay): TemplateResult {
  const { steps, at, now, live, look } = replay
  const last = Math.max(0, steps.length - (now === null ? 1 : 0))
  const step = steps[at]
  const told = steps.length === 0 ? '' : step ? `${at + 1} of ${steps.length}` : `now, ${steps.length} kept`
  const slide = (event: Event): void => {
    if (event.target instanceof HTMLInputElement) look(Number(event.target.value))
  }
  // Keys of the page are not heard inside fields, and a slider is one.
  const slideKey = (event: KeyboardEvent): void => {
    if (event.key === ',') look(Math.max(0, at - 1))
    if (event.key === '.') look(at + 1)
  }
  return html`<div class="bar row">
    <button
      class="ghost small icon-only"
      aria-label="First step"
      title="First step"
      ?disabled=${at <= 0}
      @click=${() => look(0)}
    >
      ${icon(actorsDrawings['skip-back'], 15)}
    </button>
    <button
      class="ghost small icon-only"
      aria-label="Previous step"
      title="Previous step (,)"
      ?disabled=${at <= 0}
      @click=${() => look(at - 1)}
    >
      ${icon(actorsDrawings['step-back'], 15)}
    </button>
    <button
      class="ghost small icon-only"
      aria-label="Next step"
      title="Next step (.)"
      ?disabled=${live}
      @click=${() => look(at + 1)}
    >
      ${icon(actorsDrawings['step-forward'], 15)}
    </button>
    <input
      type="range"
      min="0"
      max=${last}
      .value=${String(at)}
      aria-label="Step"
      aria-valuetext=${step ? stepWords(step) : steps.length === 0 ? 'No steps' : 'Now'}
      ?disabled=${last < 1}
      @input=${slide}
      @keydown=${slideKey}
    />
    <span class="num faint">${told}</span>
    <button class="small" ?disabled=${live} title="Go live (Esc)" @click=${replay.goLive}>
      ${icon('radio', 13)}Go live
    </button>
  </div>`
}

export function logTable(replay: Replay): TemplateResult {
  const { steps, now, hasEarlier, reading } = replay
  if (steps.length === 0 && !reading) {
    return html`<div class="empty">
      <b>No steps are kept for this actor</b>
      <p>Its state is what is stored; how it came there was not recorded.</p>
    </div>`
  }
  return html`<table>
    <caption class="sr">
      Log, oldest step first
    </caption>
    <thead>
      <tr>
        <th scope="col" class="end">Step</th>
        <th scope="col">Time</th>
        <th scope="col">Event</th>
        <th scope="col">Cause</th>
        <th scope="col">State after</th>
        <th scope="col">Facts</th>
      </tr>
    </thead>
    <tbody>
      ${
        hasEarlier
          ? html`<tr class="earlier">
              <td colspan="6">
                <button class="ghost small" ?disabled=${reading} @click=${replay.readEarlier}>
                  ${icon('history', 13)}Read earlier steps (${plural((steps[0]?.revision ?? 1) - 1, 'more', 'more')})
                </button>
              </td>
            </tr>`
          : nothing
      }
      ${steps.map((step, index) => html`${skippedRow(steps[index - 1]?.revision, step.revision - 1)}${logRow(replay, step, index)}`)}
      ${now === null ? nothing : skippedRow(steps.at(-1)?.revision, now)}
    </tbody>
  </table>`
}

/** What a loop does that goes round by itself is saved and not logged (actors/loop/routine.ts). */
function skippedRow(last: number | undefined, before: number): TemplateResult | typeof nothing {
  if (last === undefined || before <= last) return nothing
  const count = before - last
  return html`<tr class="skipped">
    <td></td>
    <td colspan="5" class="faint">${plural(count, 'routine step')}, not kept</td>
  </tr>`
}

/** Nothing is known of what stood before a step whose neighbour is not kept. */
const changedNothing = (before: ActorStep | undefined, { revision, edges, facts, value }: ActorStep): boolean =>
  before?.revision === revision - 1 &&
  edges.length === 0 &&
  facts.length === 0 &&
  leavesOf(before.value) === leavesOf(value)

function logRow(replay: Replay, step: ActorStep, index: number): TemplateResult {
  const { kind, label } = describeEvent(step.event.type)
  const looked = index === replay.at
  const unmoved = changedNothing(replay.steps[index - 1], step)
  return html`<tr
    aria-current=${looked ? 'step' : nothing}
    class=${index > replay.at ? 'future' : nothing}
    @click=${() => replay.look(index)}
  >
    <td class="end num faint">${step.revision}</td>
    <td class="num faint">${replay.format.at(step.at)}</td>
    <td>
      <button class="bare ${kind}" title=${label} aria-label=${`Look at step ${step.revision}: ${label}`}>
        ${spaced(label)}</button
      >${unmoved ? html`<span class="chip tiny">changed nothing</span>` : nothing}
    </td>
    <td class="ell">${step.cause}</td>
    <td class="faint ell" title=${leavesOf(step.value)}>${leafWords(step.value)}</td>
    <td class="mono faint ell" title=${step.facts.join(', ')}>${step.facts.join(', ')}</td>
  </tr>`
}
