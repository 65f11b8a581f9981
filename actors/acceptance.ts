/**
 * Taking a command from a person: what must be true before it is accepted, then one commit. Reads are done before the
 * commit where nothing can change them (a task's context, its skill); the agent is checked inside it, and so is a sender who is
 * presumed.
 */
import { parseCard } from '../a2a/card.ts'
import { supportsSkillRouting } from '../a2a/extensions/skill-routing.ts'
import type { Viewer } from '../domain/access.ts'
import type { CommandBody } from '../domain/command-body.ts'
import type { Command } from '../domain/command.ts'
import { Refusal } from '../domain/refusal.ts'
import { findAgent, readHolding } from '../persistence/agents.ts'
import { findByKey, findCommand, type NewCommand } from '../persistence/commands.ts'
import type { Database } from '../persistence/database.ts'
import { findRemoteTask, knownRemoteTasks, type TaskAddress } from '../persistence/task-views.ts'
import type { Presumption } from '../persistence/presumptions.ts'
import { acceptCommand, contentDigest, newCommand, Unproven, type Accepted } from './command.ts'
import { acceptInPlace } from './replacing.ts'
import type { Instruments, Runtime } from './loop/runtime.ts'

export interface Asked {
  readonly agentId: string
  readonly body: CommandBody
  readonly idempotencyKey: string
}

export interface CommandsTools {
  readonly db: Database
  readonly runtime: Runtime
  readonly instruments: Instruments
  readonly extensionHost: string
  /** This process could dispatch to the agent now, without asking for its card. */
  readonly isDiscovered: (agentId: string) => boolean
}

export class Commands {
  readonly #db: Database
  readonly #runtime: Runtime
  readonly #instruments: Instruments
  readonly #extensionHost: string
  readonly #isDiscovered: (agentId: string) => boolean

  constructor(tools: CommandsTools) {
    this.#db = tools.db
    this.#runtime = tools.runtime
    this.#instruments = tools.instruments
    this.#extensionHost = tools.extensionHost
    this.#isDiscovered = tools.isDiscovered
  }

  /**
   * Refuses, or accepts durably. The same key with the same content is the same command, for whoever could send it today: what
   * was accepted once stays accepted, even if the agent was removed or changed its card since, but a key opens no door.
   *
   * With a presumption, nobody has asked yet whether the viewer is there: the commit does. It rejects with Unproven where the
   * presumption does not stand, and where anything is wrong before the commit: nobody is told so who is not known and counted.
   */
  async accept(viewer: Viewer, asked: Asked, presumption?: Presumption): Promise<Accepted> {
    const { replaces } = asked.body
    // What it replaces is looked at before it is accepted, which a presumption cannot wait for.
    if (replaces !== undefined && presumption) throw new Unproven()
    try {
      const command = await this.#composed(viewer, asked).catch((error: unknown) => {
        throw presumption ? new Unproven({ cause: error }) : error
      })
      if (replaces !== undefined) return await this.#runtime.perform(acceptInPlace, { viewer, command, replaces })
      return await this.#runtime.perform(acceptCommand, { command, ...(presumption && { presumption }) })
    } catch (error) {
      const earlier = error instanceof Refusal ? await this.#earlier(viewer, asked) : null
      if (earlier) return earlier
      throw error
    }
  }

  async #earlier(viewer: Viewer, { agentId, body, idempotencyKey }: Asked): Promise<Accepted | null> {
    const found = await findByKey(this.#db.pool, viewer, idempotencyKey)
    if (!found) return null
    if (found.contentDigest !== contentDigest(agentId, body)) throw new Refusal('command.key.taken')
    return { command: found.command, replayed: true }
  }

  /** Refuses, or says what is to be accepted. */
  async #composed(viewer: Viewer, { agentId, body, idempotencyKey }: Asked): Promise<NewCommand> {
    const task = body.taskId === undefined ? null : await this.#task(viewer, agentId, body, body.taskId)
    const skillId = task ? task.skillId : (body.skillId ?? null)
    await this.#checkGrant(viewer, agentId, skillId)
    if (body.skillId !== undefined) await this.#checkSkill(viewer, agentId, body, body.skillId, task)
    const references = body.config?.referenceTaskIds ?? []
    if (references.length > 0) await this.#checkReferences(viewer, agentId, body.tenant, references)
    const status = this.#isDiscovered(agentId) ? 'dispatching' : 'pending'
    const of = { agentId, body, idempotencyKey, taskId: task?.localId ?? null, skillId, status } as const
    return newCommand(viewer, of, () => this.#instruments.newToken())
  }

  /** Whether a presumption is worth it: its commit leaves at once. */
  get isPrompt(): boolean {
    return this.#runtime.isPrompt
  }

  async find(viewer: Viewer, id: string): Promise<Command> {
    const command = await findCommand(this.#db.pool, viewer, id)
    if (!command) throw new Refusal('command.unknown')
    return command
  }

  async #task(viewer: Viewer, agentId: string, body: CommandBody, remoteId: string): Promise<TaskAddress> {
    const agent = await findAgent(this.#db.pool, viewer, agentId)
    if (!agent) throw new Refusal('agent.unknown')
    const address = { agentId, tenant: body.tenant, remoteId }
    const task = await findRemoteTask(this.#db.pool, viewer, address)
    if (!task) throw new Refusal('task.unknown')
    if (body.contextId !== undefined && body.contextId !== task.contextId) throw new Refusal('task.context')
    return task
  }

  /**
   * What is not held answers as if it were not there; what is seen and may not be operated is forbidden. So a generic send by
   * somebody who holds only skills is forbidden, for they see the agent, and a send to a skill that is not theirs is unknown.
   * An administrator holds everything, and the agent itself is looked for by the commit: no read here.
   */
  async #checkGrant(viewer: Viewer, agentId: string, skillId: string | null): Promise<void> {
    if (viewer.role === 'admin') return
    const holding = await readHolding(this.#db.pool, viewer, agentId, skillId)
    if (!holding || (skillId !== null && !holding.reads)) throw new Refusal('agent.unknown')
    if (!holding.operates) throw new Refusal('action.forbidden')
  }

  async #checkSkill(
    viewer: Viewer,
    agentId: string,
    body: CommandBody,
    skillId: string,
    task: TaskAddress | null,
  ): Promise<void> {
    if (task && task.skillId !== skillId) throw new Refusal('skill.fixed')
    if (!task && body.contextId !== undefined) throw new Refusal('skill.context')
    const agent = await findAgent(this.#db.pool, viewer, agentId)
    if (!agent) throw new Refusal('agent.unknown')
    const parsed = agent.card === null ? { fault: 'never seen' } : parseCard(JSON.parse(agent.card))
    if ('fault' in parsed || !supportsSkillRouting(parsed.card, this.#extensionHost))
      throw new Refusal('skill.unsupported')
  }

  async #checkReferences(viewer: Viewer, agentId: string, tenant: string, remoteIds: readonly string[]): Promise<void> {
    const known = await knownRemoteTasks(this.#db.pool, viewer, agentId, tenant, remoteIds)
    if (remoteIds.some((id) => !known.has(id))) throw new Refusal('task.reference.unknown')
  }
}
