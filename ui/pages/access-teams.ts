/** `<signalbox-access-teams>`: teams and who is in them. Owns the form of a new one; changes are proposed, not made. */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import type { Team } from '../../domain/grant.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { plural } from '../format.ts'
import { personMark } from '../states.ts'
import { type Directory, ProposeEvent } from './access-data.ts'
import { roleChip } from './access-people.ts'
import { accessSheet } from './access-sheet.ts'

export class SignalboxAccessTeams extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false }, directory: { attribute: false } }
  static override styles = [sheet, accessSheet]
  declare app: App
  declare directory: Directory

  #create(event: SubmitEvent & { currentTarget: HTMLFormElement }): void {
    event.preventDefault()
    const form = event.currentTarget
    const name = new FormData(form).get('name')
    if (typeof name !== 'string' || name.trim() === '') return
    const sentences = ['A new team is empty and holds nothing. A team’s name cannot be changed later.']
    const change = { action: 'createTeam', name: name.trim() } as const
    this.dispatchEvent(
      new ProposeEvent({ title: `Create the team “${name.trim()}”?`, sentences, word: 'Create team', change }),
    )
    form.reset()
  }

  override render(): TemplateResult {
    const { teams } = this.directory.record
    const open = teams.filter(({ enabled }) => enabled)
    const closed = teams.filter(({ enabled }) => !enabled)
    return html`<form
        class="row tools"
        @submit=${(event: SubmitEvent & { currentTarget: HTMLFormElement }) => this.#create(event)}
      >
        <h2 class="label grow">Teams <span class="num">${open.length}</span></h2>
        <input name="name" aria-label="Name of a new team" placeholder="Name of a new team" maxlength="200" required />
        <button>${icon('plus', 14)}Create</button>
      </form>
      ${
        open.length === 0
          ? html`<div class="empty small">
              ${icon('users', 28)}<b>No teams yet</b>
              <p>What a team is granted, everybody in it holds, and loses when they leave it.</p>
            </div>`
          : html`<ul class="teams">
              ${open.map((team) => this.#team(team))}
            </ul>`
      }
      ${
        closed.length > 0
          ? html`<details class="how">
              <summary>${plural(closed.length, 'disabled team')}</summary>
              <p class="muted">
                They give nothing and are never enabled again: ${closed.map(({ name }) => name).join(', ')}.
              </p>
            </details>`
          : nothing
      }`
  }

  #team(team: Team): TemplateResult {
    const members = this.directory.membersOf(team.id)
    const held = this.directory.openGrants.filter(({ subjectId }) => subjectId === team.id).length
    const others = this.directory.record.memberships.filter((person) => !members.includes(person))
    return html`<li class="card">
      <div class="row top">
        <h3 class="grow"><bdi>${team.name}</bdi></h3>
        <span class="muted">${plural(members.length, 'person', 'people')}, ${plural(held, 'grant')}</span>
        <button class="small ghost danger" aria-label=${`Disable ${team.name}`} @click=${() => this.#disable(team)}>
          Disable
        </button>
      </div>
      <ul class="members">
        ${members.map(
          (person) =>
            html`<li class="row">
              ${personMark(person.name)}<bdi class="grow ell">${person.name}</bdi>${roleChip(person.role)}
              <button
                class="ghost small icon-only"
                aria-label=${`Take ${person.name} out of ${team.name}`}
                title="Take out of the team"
                @click=${() => this.#remove(team, person)}
              >
                ${icon('x', 14)}
              </button>
            </li>`,
        )}
      </ul>
      ${
        others.length > 0
          ? html`<select
              aria-label=${`Add somebody to ${team.name}`}
              @change=${(event: Event & { currentTarget: HTMLSelectElement }) => this.#add(team, event.currentTarget)}
            >
              <option value="">Add somebody…</option>
              ${others.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}
            </select>`
          : nothing
      }
    </li>`
  }

  #add({ id: teamId, name }: Team, field: HTMLSelectElement): void {
    const membershipId = field.value
    field.value = ''
    if (membershipId === '') return
    this.dispatchEvent(
      new ProposeEvent({
        title: `Add ${this.directory.person(membershipId)} to “${name}”?`,
        sentences: [],
        word: 'Add to team',
        change: { action: 'addTeamMember', teamId, membershipId },
      }),
    )
  }

  #remove({ id: teamId, name }: Team, person: { readonly id: string; readonly name: string }): void {
    this.dispatchEvent(
      new ProposeEvent({
        title: `Take ${person.name} out of “${name}”?`,
        sentences: ['It counts from their next request on; what they have open ends.'],
        word: 'Take out',
        change: { action: 'removeTeamMember', teamId, membershipId: person.id },
      }),
    )
  }

  #disable({ id: teamId, name }: Team): void {
    this.dispatchEvent(
      new ProposeEvent({
        title: `Disable the team “${name}”?`,
        sentences: ['All its grants stop counting, from the next request on.', 'It cannot be enabled again.'],
        word: 'Disable team',
        change: { action: 'disableTeam', teamId },
      }),
    )
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-access-teams': SignalboxAccessTeams
  }
}
