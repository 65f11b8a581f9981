/** `<signalbox-access-why>`: why a person sees an agent, or does not. Owns choosing the two; the address keeps them. */
import { html, LitElement, type PropertyDeclarations, type TemplateResult } from 'lit'
import { accessReasons, explainAccess, type AccessReasons } from '../../domain/access-reasons.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { roleWords } from '../states.ts'
import { type Directory, nameOf } from './access-data.ts'
import { accessSheet } from './access-sheet.ts'

interface Choice {
  readonly id: string
  readonly name: string
}

export class SignalboxAccessWhy extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    directory: { attribute: false },
    query: { attribute: false },
  }
  static override styles = [sheet, accessSheet]
  declare app: App
  declare directory: Directory
  declare query: URLSearchParams | undefined

  #chosen(which: 'person' | 'agent'): string {
    return this.query?.get(which) ?? ''
  }

  #choose(which: 'person' | 'agent', id: string): void {
    const query = new URLSearchParams(this.query)
    query.set(which, id)
    this.app.router.replace(`/access/why?${query.toString()}`)
  }

  override render(): TemplateResult {
    const agents = this.directory.agents?.map((agent) => ({ id: agent.id, name: nameOf(agent) }))
    const members = this.directory.record.memberships.map(({ id, name, role }) => ({
      id,
      name: `${name} (${roleWords[role]})`,
    }))
    const membershipId = this.#chosen('person')
    const agentId = this.#chosen('agent')
    return html`<div class="row wrap choose">
        ${this.#field('person', 'Person', members)} ${this.#field('agent', 'Agent', agents)}
      </div>
      <div role="status">${this.#answer(membershipId, agentId)}</div>`
  }

  #field(which: 'person' | 'agent', label: string, choices: readonly Choice[] | undefined): TemplateResult {
    const chosen = this.#chosen(which)
    return html`<div class="field">
      <label for=${which}>${label}</label>
      <select
        id=${which}
        @change=${(event: Event & { currentTarget: HTMLSelectElement }) => this.#choose(which, event.currentTarget.value)}
      >
        <option value="" disabled ?selected=${chosen === '' || !choices}>
          ${choices ? 'Choose…' : 'Asking the agents…'}
        </option>
        ${(choices ?? [])
          .toSorted((a, b) => a.name.localeCompare(b.name))
          .map(({ id, name }) => html`<option value=${id} ?selected=${id === chosen}>${name}</option>`)}
      </select>
    </div>`
  }

  #answer(membershipId: string, agentId: string): TemplateResult {
    if (membershipId === '')
      return html`<p class="muted">Choose a person to see what they can see, and an agent to see why.</p>`
    // What a grant of a skill gives depends on the agent's card.
    if (!this.directory.agents) return html`<p class="muted">Asking the agents for their cards…</p>`
    if (agentId === '') return this.#everything(membershipId)
    const reasons = this.#reasons(membershipId, agentId)
    if (!reasons) return html`<p class="muted">That person may not sign in here.</p>`
    const { verdict, lines } = explainAccess(reasons, this.directory.agent(agentId))
    const sees = reasons.whole !== null || reasons.skills.size > 0
    return html`<section class="card verdict">
      <p class="row answer ${sees ? 'tone-ok' : ''}">
        ${icon(sees ? 'circle-check' : 'circle-slash', 18)}<strong>${verdict}</strong>
      </p>
      <h2 class="label">Because</h2>
      <ul class="reasons">
        ${lines.map(
          ({ text, counts }) =>
            html`<li class=${counts ? 'row' : 'row faint'}>
              ${icon(counts ? 'check' : 'minus', 14)}<span>${text}</span>
            </li>`,
        )}
      </ul>
    </section>`
  }

  #reasons(membershipId: string, agentId: string): AccessReasons | null {
    const routesSkills = this.directory.routesSkills(agentId)
    return accessReasons(this.directory.record, { membershipId, agentId, routesSkills })
  }

  /** Without an agent: all that the person holds, each leading to its reasons. */
  #everything(membershipId: string): TemplateResult {
    const held = (this.directory.agents ?? []).flatMap((agent) => {
      const reasons = this.#reasons(membershipId, agent.id)
      return reasons && (reasons.whole !== null || reasons.skills.size > 0) ? [{ agent, reasons }] : []
    })
    if (held.length === 0) return html`<p class="muted">${this.directory.person(membershipId)} sees no agent.</p>`
    return html`<ul class="card rows">
      ${held.map(({ agent, reasons }) => {
        const path = `/access/why?person=${membershipId}&agent=${agent.id}`
        return html`<li>
          <a class="link" href=${this.app.router.href(path)} data-route=${path}><bdi>${nameOf(agent)}</bdi></a>
          <span class="muted">${explainAccess(reasons, nameOf(agent)).verdict}</span>
        </li>`
      })}
    </ul>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-access-why': SignalboxAccessWhy
  }
}
