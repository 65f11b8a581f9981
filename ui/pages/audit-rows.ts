/** Records of the audit trail as a table, in plain words. Owns grouping by day and the links out of a record. */
import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { AuditAnswer, AuditContext, AuditRecord } from '../../domain/audit.ts'
import { auditActor, type AuditNames, auditWords } from '../../domain/audit-words.ts'
import type { App } from '../app.ts'
import { icon, type IconName } from '../elements/icon.ts'
import { personMark } from '../states.ts'
import type { Directory } from './access-data.ts'

export interface RowsContext {
  readonly app: App
  readonly utc: boolean
  readonly names: AuditNames
  /** By task id; a task that is not in it cannot be read by this person, or is none of the console's. */
  readonly context: Readonly<Record<string, AuditContext>>
  readonly onActor: (userId: string) => void
  readonly onTask: (taskId: string) => void
}

/** Names by what the answers brought, and by the record of access where it is known. */
export const namesFrom = (
  pages: readonly Pick<AuditAnswer, 'people'>[],
  directory: Directory | undefined,
): AuditNames => ({
  person: (id) => pages.map(({ people }) => people[id]).find((name) => name !== undefined),
  agent: (id) => (directory?.has(id) ? directory.agent(id) : undefined),
  team: (id) => directory?.record.teams.find((team) => team.id === id)?.name,
})

const faces: readonly (readonly [prefix: string, face: IconName])[] = [
  ['session.started', 'log-in'],
  ['session.', 'log-out'],
  ['credential.', 'key-round'],
  ['access.', 'key-round'],
  ['team.', 'users'],
  ['identity.', 'users'],
  ['agent.', 'bot'],
  ['audit.', 'download'],
  ['decision.', 'shield-check'],
  ['task.send', 'arrow-right'],
  ['task.cancel', 'circle-slash'],
]
const faceOf = (kind: string): IconName => faces.find(([prefix]) => kind.startsWith(prefix))?.[1] ?? 'list-checks'

export function auditRows(records: readonly AuditRecord[], context: RowsContext): TemplateResult {
  const zone = context.utc ? { timeZone: 'UTC' } : {}
  const clock = new Intl.DateTimeFormat(undefined, { ...zone, hour: '2-digit', minute: '2-digit', second: '2-digit' })
  const day = new Intl.DateTimeFormat(undefined, {
    ...zone,
    weekday: 'short',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
  })
  const days = Map.groupBy(records, ({ at }) => day.format(new Date(at)))
  return html`${[...days].map(
    ([name, of]) =>
      html`<section class="day">
        <h2 class="label">${name}</h2>
        <ol>
          ${repeat(
            of,
            ({ key }) => key,
            (record) => row(record, clock, context),
          )}
        </ol>
      </section>`,
  )}`
}

function row(record: AuditRecord, clock: Intl.DateTimeFormat, context: RowsContext): TemplateResult {
  const { app, names } = context
  const { at, kind, actorUserId, taskId } = record
  const who = auditActor(record, names)
  const task = taskId === null ? undefined : context.context[taskId]
  const path = `/tasks/${taskId ?? ''}`
  return html`<li class="record">
    <time class="num faint" datetime=${at} title=${app.format.full(at)}>${clock.format(new Date(at))}</time>
    <span class="face faint">${icon(faceOf(kind), 15)}</span>
    <div class="told">
      <p>
        ${
          actorUserId === null
            ? html`<b>${who}</b>`
            : html`<button class="name" title="Show only what they did" @click=${() => context.onActor(actorUserId)}>
                ${personMark(who.replaceAll(/[\u2068\u2069]/g, ''))}<b>${who}</b>
              </button>`
        }
        ${auditWords(record, names)}
      </p>
      ${
        task && taskId !== null
          ? html`<p class="row task">
              <a class="link ell" href=${app.router.href(path)} data-route=${path}><bdi>${task.title}</bdi></a>
              <button class="small ghost" @click=${() => context.onTask(taskId)}>
                All of this task<span class="sr">, ${task.title}</span>
              </button>
            </p>`
          : nothing
      }
      <details>
        <summary class="faint">
          <span class="mono">${kind}</span><span class="sr"> at ${clock.format(new Date(at))}: as recorded</span>
        </summary>
        <dl class="raw mono">
          ${Object.entries({ ...record.data, subject: record.subjectId, record: record.key }).map(
            ([name, value]) =>
              html`<div>
                <dt>${name}</dt>
                <dd>${value === null ? 'none' : String(value)}</dd>
              </div>`,
          )}
        </dl>
      </details>
    </div>
  </li>`
}
