/** Two views of access that only show: who may sign in, and which agents are called with a credential. */
import { html, nothing, type TemplateResult } from 'lit'
import type { Role } from '../../domain/access.ts'
import type { CredentialKind } from '../../domain/credential.ts'
import type { AccessRecord } from '../../domain/grant.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { personMark, roleWords, type Tone } from '../states.ts'
import type { Directory } from './access-data.ts'

const roleTones: Record<Role, Tone> = { admin: 'accent', operator: 'info', viewer: '' }
export const roleChip = (role: Role): TemplateResult =>
  html`<span class=${roleTones[role] ? `chip tone-${roleTones[role]}` : 'chip'}>${roleWords[role]}</span>`

/** A line to be typed at a shell, with what the person has to fill in marked by angle brackets. */
export const commandLine = (line: string): TemplateResult => html`<code class="mono shell">${line}</code>`

const provisionLine =
  'npm run auth:provision -- --issuer <issuer> --subject <subject> --organization <slug> --name <name> --role operator'
export const rotateLine = (agentId: string): string =>
  `npm run security:credentials -- --organization <slug> --agent ${agentId} < binding.json`

interface PeopleContext {
  readonly app: App
  readonly wanted: string
  readonly filter: (wanted: string) => void
}

export function people(directory: Directory, { app, wanted, filter }: PeopleContext): TemplateResult {
  const { memberships } = directory.record
  const searched = wanted.trim().toLowerCase()
  const shown = memberships.filter(({ name, role }) => `${name} ${roleWords[role]}`.toLowerCase().includes(searched))
  return html`<div class="row tools">
      <h2 class="label grow">People who may sign in <span class="num">${memberships.length}</span></h2>
      <input
        type="search"
        aria-label="Filter people"
        placeholder="Filter by name or role"
        .value=${wanted}
        @input=${(event: Event & { currentTarget: HTMLInputElement }) => filter(event.currentTarget.value)}
      />
    </div>
    ${
      shown.length === 0
        ? html`<p class="muted">Nobody matches.</p>`
        : html`<table>
            <thead>
              <tr>
                <th scope="col">Person</th>
                <th scope="col">Role</th>
                <th scope="col">Teams</th>
                <th scope="col"><span class="sr">Why they see an agent</span></th>
              </tr>
            </thead>
            <tbody>
              ${shown.map((person) => personRow(directory, app, person))}
            </tbody>
          </table>`
    }
    <details class="how">
      <summary>How somebody is admitted, changes role or leaves</summary>
      <p class="muted">
        At the console’s own shell, by the exact issuer and subject of their identity. The same line with another role
        changes it; <span class="mono">auth:disable</span> withdraws them and ends their sessions.
      </p>
      ${commandLine(provisionLine)}
    </details>`
}

function personRow(directory: Directory, app: App, person: AccessRecord['memberships'][number]): TemplateResult {
  const { teams, teamMembers } = directory.record
  const own = teams.filter(({ id }) =>
    teamMembers.some((each) => each.teamId === id && each.membershipId === person.id),
  )
  const why = `/access/why?person=${person.id}`
  return html`<tr>
    <th scope="row">
      <span class="row">${personMark(person.name)}<bdi class="name ell">${person.name}</bdi></span>
    </th>
    <td>${roleChip(person.role)}</td>
    <td>
      <span class="chips"
        >${own.map(({ name, enabled }) => html`<bdi class="chip line">${name}${enabled ? '' : ' (disabled)'}</bdi>`)}</span
      >
    </td>
    <td class="end">
      <a class="link" href=${app.router.href(why)} data-route=${why}
        >What can they see?<span class="sr"> ${person.name}</span></a
      >
    </td>
  </tr>`
}

const kindWords: Record<CredentialKind, string> = {
  bearer: 'Bearer token',
  apiKey: 'API key',
  oauthClient: 'OAuth client credentials',
  mtls: 'Client certificate',
}

type Stored = AccessRecord['credentials'][number]

/** What is known of a credential; the secret itself never leaves the vault. */
export const credentialFacts = ({ kind, enabled, updatedAt }: Stored, app: App): TemplateResult =>
  html`<span class="row wrap"
    ><b>${kindWords[kind]}</b>${
      enabled
        ? html`<span class="chip tone-ok">${icon('circle-check', 13)}In use</span>`
        : html`<span class="chip">${icon('circle-slash', 13)}Revoked</span>`
    }<span class="muted">changed ${app.format.when(updatedAt)}</span></span
  >`

export function credentials(directory: Directory, app: App): TemplateResult {
  const { credentials: stored } = directory.record
  return html`<h2 class="label">Credentials for agents <span class="num">${stored.length}</span></h2>
    <p class="muted">
      A credential goes only to the origins it was stored for, and nobody can read it here: it is sealed in the vault.
      Storing another one replaces it from the next call on.
    </p>
    ${
      stored.length === 0
        ? html`<div class="empty small">
            ${icon('key-round', 28)}<b>No credential is stored</b>
            <p>Agents are called without one.</p>
          </div>`
        : html`<ul class="card rows">
            ${stored.map((each) => {
              const path = `/agents/${each.agentId}`
              return html`<li>
                ${
                  directory.has(each.agentId)
                    ? html`<a class="link" href=${app.router.href(path)} data-route=${path}
                        ><bdi>${directory.agent(each.agentId)}</bdi></a
                      >`
                    : html`<bdi>${directory.agent(each.agentId)}</bdi>`
                }
                ${credentialFacts(each, app)} ${each.enabled ? commandLine(rotateLine(each.agentId)) : nothing}
              </li>`
            })}
          </ul>`
    }`
}
