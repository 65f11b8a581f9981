/**
 * `<signalbox-new-task agent-id>`: the first message of a task that does not exist yet. Owns choosing the agent; writing and
 * sending are the composer's, which moves on to the task as soon as the console has it.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { live } from 'lit/directives/live.js'
import { repeat } from 'lit/directives/repeat.js'
import type { Agent } from '../../domain/agent.ts'
import { type App, sessionQuestion } from '../app.ts'
import { hostOf } from '../card.ts'
import { Query } from '../controllers/query.ts'
import { SendAgain } from '../controllers/send-again.ts'
import { readersRead, SignalboxComposer, viewersRead } from '../elements/composer.ts'
import { failure, skeleton } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { define } from '../elements/view.ts'
import { agentsQuestion } from '../agent-questions.ts'
import type { Target } from '../sending.ts'

define('signalbox-composer', SignalboxComposer)

const nameOf = (agent: Agent): string => agent.name ?? hostOf(agent.cardUrl)

export class SignalboxNewTask extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    agentId: { attribute: 'agent-id' },
    _chosen: { state: true },
    _skillId: { state: true },
  }
  static override styles = [
    sheet,
    css`
      :host {
        display: grid;
        grid-template-rows: auto minmax(0, 1fr) auto;
        height: 100%;
      }
      header {
        display: flex;
        align-items: center;
        gap: 8px;
        padding: 18px 24px 14px;
        border-bottom: 1px solid var(--sb-border);
      }
      .back {
        display: none;
      }
      .in,
      .foot {
        width: 100%;
        max-width: 820px;
        margin: 0 auto;
        padding: 20px 24px;
      }
      .foot {
        padding-top: 0;
      }
      .foot > .notice {
        margin-bottom: 8px;
      }
      .foot .quoted {
        max-height: 80px;
        overflow: auto;
      }
      .field {
        max-width: 420px;
      }
      .field.skill {
        margin-top: 12px;
      }
      .about {
        display: grid;
        gap: 12px;
        margin-top: 18px;
        max-width: 66ch;
      }
      .examples {
        display: flex;
        flex-wrap: wrap;
        gap: 6px;
      }
      .examples button {
        height: auto;
        min-height: 26px;
        padding: 4px 10px;
        white-space: normal;
        text-align: start;
        line-height: 18px;
        font-weight: 440;
      }
      @container console (max-width: 720px) {
        .back {
          display: inline-flex;
        }
        header,
        .in,
        .foot {
          padding-inline: 16px;
        }
      }
    `,
  ]
  declare app: App
  /** Chosen by the address; empty when the person is to choose. */
  declare agentId: string
  declare _chosen: string
  /** Of an agent of which only skills may be sent to. */
  declare _skillId: string
  #agents = new Query(this, () => ({ queries: this.app.queries, question: agentsQuestion }))
  #again = new SendAgain(
    this,
    () => this.app,
    () => this.#composer,
  )
  #session = new Query(this, () => ({ queries: this.app.queries, question: sessionQuestion }))

  constructor() {
    super()
    this.agentId = ''
    this._chosen = ''
    this._skillId = ''
  }

  /** The one there is, when there is only one that answers. */
  #current(agents: readonly Agent[]): Agent | undefined {
    const wanted = this._chosen || this.agentId
    const answering = agents.filter(({ error }) => error === undefined)
    return (
      agents.find(({ id }) => id === wanted) ?? (answering.length === 1 && wanted === '' ? answering[0] : undefined)
    )
  }

  get #composer(): SignalboxComposer | null {
    const composer = this.renderRoot.querySelector('signalbox-composer')
    return composer instanceof SignalboxComposer ? composer : null
  }

  #placed = false
  /** Once there is something to fill in: the agent if that is open, else the message. */
  override updated(): void {
    if (this.#placed || !this.#agents.data) return
    const agent = this.#current(this.#agents.data.agents)
    const field = agent ? this.#composer : this.renderRoot.querySelector('select')
    // A list from before the agent was added does not have it yet: the newer one will place the focus.
    if (!field || (!agent && this.agentId !== '')) return
    this.#placed = true
    field.focus()
  }

  override render(): TemplateResult {
    const { data, fault } = this.#agents.answer
    return html`<header>
        <a
          class="back button ghost small"
          href=${this.app.router.href('/tasks')}
          data-route="/tasks"
          aria-label="Back to the list"
          >${icon('arrow-left', 14)}</a
        >
        <h1 class="h-xl">New task</h1>
      </header>
      ${data ? this.#form(data.agents) : fault ? failure(fault, () => this.#agents.refresh()) : skeleton(2, 'page')}`
  }

  #form(agents: readonly Agent[]): TemplateResult {
    const role = this.#session.data?.user.role
    if (role === 'viewer') {
      return html`<div class="empty">
        ${icon('key-round', 28)}<b>A task begins with a message</b>
        <p>${viewersRead}</p>
      </div>`
    }
    if (agents.length === 0) {
      const isAdmin = role === 'admin'
      return html`<div class="empty">
        ${icon('bot', 28)}<b>No agent to send it to</b>
        <p>
          ${isAdmin ? 'Add an agent first; then it can be given work.' : 'None is granted to you. An administrator grants agents to people and teams.'}
        </p>
        ${
          isAdmin
            ? html`<div class="row">
                <a class="button" href=${this.app.router.href('/agents')} data-route="/agents"
                  >${icon('plus', 14)}Add one</a
                >
              </div>`
            : nothing
        }
      </div>`
    }
    const agent = this.#current(agents)
    return html`<div class="in scroll">
        <div class="field">
          <label for="agent">Agent</label>
          <select
            id="agent"
            @change=${(event: Event & { currentTarget: HTMLSelectElement }) => {
              this._chosen = event.currentTarget.value
            }}
          >
            ${agent ? nothing : html`<option value="" selected disabled>Choose…</option>`}
            ${repeat(
              agents.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b))),
              ({ id }) => id,
              (each) =>
                html`<option value=${each.id} .selected=${live(each.id === agent?.id)}>
                  ${nameOf(each)}${each.error === undefined ? '' : ' (does not answer)'}
                </option>`,
            )}
          </select>
        </div>
        ${agent ? this.#skills(agent) : nothing} ${agent ? this.#about(agent) : nothing}
      </div>
      <div class="foot">
        ${this.#again.notice(agent && this.#target(agent))}
        <signalbox-composer
          .app=${this.app}
          scope=${`new:${agent?.id ?? ''}`}
          .target=${agent && this.#target(agent)}
          closed=${agent?.operableSkills?.length === 0 ? readersRead : ''}
          .caution=${this.#again.caution}
          .replacing=${this.#again.replacing}
          hint=${agent ? `What should ${nameOf(agent)} do?` : 'What should be done?'}
        ></signalbox-composer>
      </div>`
  }

  #target(agent: Agent): Target {
    const skillId = this.#skillOf(agent)
    return { agentId: agent.id, tenant: '', ...(skillId === undefined ? {} : { skillId }) }
  }

  /** The skill that a message is for, where this person may not send to the agent as a whole. */
  #skillOf({ operableSkills }: Agent): string | undefined {
    return operableSkills?.find((id) => id === this._skillId) ?? operableSkills?.[0]
  }

  #skills(agent: Agent): TemplateResult | typeof nothing {
    const chosen = this.#skillOf(agent)
    if (chosen === undefined) return nothing
    const nameOfSkill = (id: string): string => agent.skills?.find((skill) => skill.id === id)?.name ?? id
    return html`<div class="field skill">
      <label for="skill">Skill</label>
      <select
        id="skill"
        @change=${(event: Event & { currentTarget: HTMLSelectElement }) => {
          this._skillId = event.currentTarget.value
        }}
      >
        ${agent.operableSkills?.map((id) => html`<option value=${id} ?selected=${id === chosen}>${nameOfSkill(id)}</option>`)}
      </select>
      <p class="muted">
        Of this agent you may send to ${agent.operableSkills?.length === 1 ? 'this skill' : 'these skills'} only.
      </p>
    </div>`
  }

  #about(agent: Agent): TemplateResult {
    // Of what this person may not send to, examples would be buttons that do nothing.
    const mayAsk = ({ id }: { id: string }): boolean => agent.operableSkills?.includes(id) ?? true
    const asked = (agent.skills ?? []).filter(mayAsk)
    const examples = asked.flatMap((skill) => skill.examples ?? []).slice(0, 6)
    return html`<div class="about">
      ${
        agent.error === undefined
          ? nothing
          : html`<p class="notice warn">
              ${icon('triangle-alert', 15)}<span
                >${agent.error.replace(/[.!?]?$/, (end) => end || '.')} A message is kept and tried three times, then
                given up.</span
              >
            </p>`
      }
      ${agent.description ? html`<p class="said muted">${agent.description}</p>` : nothing}
      ${
        examples.length > 0
          ? html`<p class="label" id="examples">It says it can do, for example</p>
              <div class="examples" role="group" aria-labelledby="examples">
                ${examples.map((example) => html`<button @click=${() => this.#take(example)}><bdi>${example}</bdi></button>`)}
              </div>`
          : nothing
      }
    </div>`
  }

  #take(example: string): void {
    this.#composer?.fill(example)
  }
}
