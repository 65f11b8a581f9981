/**
 * `<signalbox-access-grants>`: what was given to whom. Owns the table, its filter and the form of a new grant; changes are proposed,
 * not made.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { live } from 'lit/directives/live.js'
import { repeat } from 'lit/directives/repeat.js'
import type { AccessChange, Grant, GrantPermission, GrantSubject } from '../../domain/grant.ts'
import type { App } from '../app.ts'
import { icon, type IconName } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { type Directory, nameOf, ProposeEvent } from './access-data.ts'
import { accessSheet } from './access-sheet.ts'

const subjectIcons = { organization: 'layers', team: 'users' } as const satisfies Partial<
  Record<GrantSubject, IconName>
>
const subjectWords: Record<GrantSubject, string> = { organization: 'organization', team: 'team', membership: 'person' }
const permissionWords: Record<GrantPermission, string> = { read: 'Read', operate: 'Read and send' }

type Granting = Extract<AccessChange, { readonly action: 'grant' }>

export class SignalboxAccessGrants extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    directory: { attribute: false },
    _wanted: { state: true },
    _revoked: { state: true },
    _agentId: { state: true },
  }
  static override styles = [sheet, accessSheet]
  declare app: App
  declare directory: Directory
  declare _wanted: string
  /** Revoked ones are shown, too. */
  declare _revoked: boolean
  declare _agentId: string

  constructor() {
    super()
    this._wanted = ''
    this._revoked = false
    this._agentId = ''
  }

  override render(): TemplateResult {
    const { grants } = this.directory.record
    const revoked = grants.filter(({ enabled }) => !enabled).length
    const wanted = this._wanted.trim().toLowerCase()
    const shown = grants
      .filter(({ enabled }) => enabled || this._revoked)
      .filter((grant) => this.#words(grant).toLowerCase().includes(wanted))
    return html`${this.#form()}
      <div class="row tools">
        <h2 class="label grow">Grants <span class="num">${grants.length - revoked}</span></h2>
        ${
          revoked > 0
            ? html`<label class="row"
                ><input
                  type="checkbox"
                  .checked=${this._revoked}
                  @change=${(event: Event & { currentTarget: HTMLInputElement }) => {
                    this._revoked = event.currentTarget.checked
                  }}
                />${revoked} revoked, too</label
              >`
            : nothing
        }
        <input
          type="search"
          aria-label="Filter grants"
          placeholder="Filter by agent, person or team"
          .value=${this._wanted}
          @input=${(event: Event & { currentTarget: HTMLInputElement }) => {
            this._wanted = event.currentTarget.value
          }}
        />
      </div>
      ${shown.length === 0 ? this.#none(grants.length > 0) : this.#table(shown)}`
  }

  #words(grant: Grant): string {
    return `${this.directory.agent(grant.agentId)} ${grant.skillId ?? ''} ${this.directory.subject(grant)}`
  }

  #none(some: boolean): TemplateResult {
    return some
      ? html`<p class="muted">No grant matches.</p>`
      : html`<div class="empty small">
          ${icon('key-round', 28)}<b>Nothing is granted yet</b>
          <p>Only administrators see agents. Give one to everybody, to a team or to a person above.</p>
        </div>`
  }

  #table(grants: readonly Grant[]): TemplateResult {
    return html`<table>
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col">Given to</th>
          <th scope="col">May</th>
          <th scope="col"><span class="sr">Revoke</span></th>
        </tr>
      </thead>
      <tbody>
        ${repeat(
          grants,
          ({ id }) => id,
          (grant) => this.#row(grant),
        )}
      </tbody>
    </table>`
  }

  #row(grant: Grant): TemplateResult {
    const { agentId, skillId, subjectType, permission, enabled } = grant
    const team = this.directory.record.teams.find(({ id }) => id === grant.subjectId)
    return html`<tr class=${enabled ? '' : 'off'}>
      <th scope="row">
        <bdi class="name ell">${this.directory.agent(agentId)}</bdi>
        ${skillId === null ? nothing : html`<span class="faint ell">only the skill <bdi class="mono">${skillId}</bdi></span>`}
      </th>
      <td>
        <span class="row"
          >${subjectType === 'membership' ? nothing : icon(subjectIcons[subjectType], 14)}<bdi>${this.directory.subject(grant)}</bdi>${subjectType === 'organization' ? nothing : html`<span class="faint">${subjectWords[subjectType]}</span>`}${team && !team.enabled ? html`<span class="chip">disabled</span>` : nothing}</span
        >
      </td>
      <td>${permissionWords[permission]}</td>
      <td class="end">
        ${
          enabled
            ? html`<button
                class="small ghost danger"
                aria-label=${`Revoke: ${this.#words(grant)}`}
                @click=${() => this.#revoke(grant)}
              >
                Revoke
              </button>`
            : html`<span class="faint">Revoked</span>`
        }
      </td>
    </tr>`
  }

  #revoke(grant: Grant): void {
    const agent = this.directory.agent(grant.agentId)
    const what = grant.skillId === null ? agent : `the skill “${grant.skillId}” of ${agent}`
    const sentences = ['It counts from the next request on; what they have open ends. The record of the grant stays.']
    const change = { action: 'revokeGrant', grantId: grant.id } as const
    const title = `Revoke ${what} from ${this.directory.subject(grant)}?`
    this.dispatchEvent(new ProposeEvent({ title, sentences, word: 'Revoke grant', change }))
  }

  #form(): TemplateResult {
    const agents = (this.directory.agents ?? []).toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)))
    const { memberships, teams } = this.directory.record
    const skills = this.directory.skillsOf(this._agentId)
    const ignores = this._agentId !== '' && this.directory.routesSkills(this._agentId) === false
    return html`<form
      class="card grant"
      aria-label="New grant"
      @submit=${(event: SubmitEvent & { currentTarget: HTMLFormElement }) => this.#grant(event)}
    >
      <div class="field">
        <label for="agent">Agent</label>
        <select
          id="agent"
          name="agent"
          required
          @change=${(event: Event & { currentTarget: HTMLSelectElement }) => {
            this._agentId = event.currentTarget.value
          }}
        >
          <option value="">${this.directory.agents ? 'Choose…' : 'Asking the agents…'}</option>
          ${repeat(
            agents,
            ({ id }) => id,
            (agent) =>
              html`<option value=${agent.id} .selected=${live(agent.id === this._agentId)}>${nameOf(agent)}</option>`,
          )}
        </select>
      </div>
      <div class="field">
        <label for="skill">What of it</label>
        <select id="skill" name="skill" aria-describedby=${ignores ? 'ignores' : nothing}>
          <option value="">The whole agent</option>
          ${skills.map(({ id, name }) => html`<option value=${id} ?disabled=${ignores}>Only: ${name}</option>`)}
        </select>
      </div>
      <div class="field">
        <label for="subject">To</label>
        <select id="subject" name="subject" required>
          <option value="organization">Everybody in the organization</option>
          <optgroup label="Teams">
            ${teams.filter(({ enabled }) => enabled).map(({ id, name }) => html`<option value="team ${id}">${name}</option>`)}
          </optgroup>
          <optgroup label="People">
            ${memberships
              .filter(({ role }) => role !== 'admin')
              .map(({ id, name }) => html`<option value="membership ${id}">${name}</option>`)}
          </optgroup>
        </select>
      </div>
      <div class="field">
        <label for="permission">May</label>
        <select id="permission" name="permission">
          <option value="read">Read</option>
          <option value="operate">Read and send</option>
        </select>
      </div>
      <button class="primary">Grant…</button>
      ${
        ignores
          ? html`<p id="ignores" class="muted">
              This agent does not advertise skill routing: nothing would keep a message to one skill, so only the whole
              agent can be given.
            </p>`
          : nothing
      }
    </form>`
  }

  #grant(event: SubmitEvent & { currentTarget: HTMLFormElement }): void {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    const text = (name: string): string => {
      const value = fields.get(name)
      return typeof value === 'string' ? value : ''
    }
    const [type = '', id = ''] = text('subject').split(' ')
    const subjectType: GrantSubject = type === 'team' || type === 'membership' ? type : 'organization'
    const change: Granting = {
      action: 'grant',
      agentId: text('agent'),
      skillId: text('skill') || null,
      subjectType,
      subjectId: subjectType === 'organization' ? this.directory.record.organizationId : id,
      permission: text('permission') === 'operate' ? 'operate' : 'read',
    }
    this.dispatchEvent(
      new ProposeEvent({ title: this.#question(change), sentences: notes(change), word: 'Grant', change }),
    )
  }

  #question(change: Granting): string {
    const agent = this.directory.agent(change.agentId)
    const what = change.skillId === null ? agent : `the skill “${change.skillId}” of ${agent}`
    return `Give ${this.directory.subject(change)} ${what}?`
  }
}

function notes({ subjectType, permission, skillId }: Granting): string[] {
  const later = subjectType === 'membership' ? [] : ['Whoever joins later gets it, too.']
  const ceiling = permission === 'operate' ? ['Viewers read only, whatever they are given.'] : []
  const reduced = skillId === null ? [] : ['They see the card with that skill alone, and tasks of that skill alone.']
  return [...reduced, ...ceiling, ...later]
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-access-grants': SignalboxAccessGrants
  }
}
