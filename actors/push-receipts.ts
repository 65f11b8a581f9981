/**
 * Taking what agents deliver to their push callbacks: who may deliver, how often, what a delivery must speak of, and
 * committing it by the door that every observation goes through. Does not know HTTP (http/push-receiver.ts) or how a callback
 * came to be (push.ts).
 */
import { createHash } from 'node:crypto'
import { Refusal } from '../domain/refusal.ts'
import type { Report } from '../domain/fact.ts'
import type { ArtifactStore } from '../persistence/artifacts.ts'
import type { Database } from '../persistence/database.ts'
import { findTarget, noteDeliveries, type DeliveryKey, type PushTarget } from '../persistence/push.ts'
import { takePlace } from '../persistence/rate-limits.ts'
import { isCredentialOf, type PushOptions } from './push-credential.ts'
import type { Answer, Instruments, Operation, Runtime } from './runtime.ts'
import type { ParsedEvent } from './threads/messages.ts'
import type { ParserPool } from './threads/pool.ts'

/** A window is a minute (persistence/rate-limits.ts). */
const limits = { everybody: 1200, registration: 120 }

export interface ReceiptTools {
  readonly db: Database
  readonly runtime: Runtime
  readonly pool: ParserPool
  readonly artifacts: ArtifactStore
  readonly instruments: Instruments
  /** Null: push is not configured, and every delivery is refused. */
  readonly push: PushOptions | null
}

/** A delivery with what it may be recognised by. */
export interface PushDelivery {
  readonly target: PushTarget
  /** The sender's own id of it. */
  readonly deliveryId: string | null
  readonly body: Uint8Array
}

interface Receipt {
  readonly target: PushTarget
  readonly keys: readonly DeliveryKey[]
  readonly report: Report
}

export class PushReceipts {
  readonly #t: ReceiptTools
  /** Monotonic milliseconds until which everybody is refused: a flood is not worth a statement a request. */
  #closedUntil = 0

  constructor(tools: ReceiptTools) {
    this.#t = tools
  }

  /**
   * Says who delivers, before a byte of the body is read: refuses when push is off, when too much arrives, when the
   * credential is not the registration's. Whoever presents a wrong one learns nothing of which registrations there are: no
   * row is looked up for them.
   */
  async admit(registrationId: string, presented: readonly string[]): Promise<PushTarget> {
    const { push, db } = this.#t
    if (!push) throw new Refusal('push.off')
    await this.#countEverybody()
    if (!isCredentialOf(push, registrationId, presented)) throw new Refusal('push.unauthenticated')
    const target = await findTarget(db.pool, registrationId)
    if (!target) throw new Refusal('push.unauthenticated')
    if ((await takePlace(db.pool, `push/${target.id}`, limits.registration)) !== null) throw new Refusal('push.limit')
    return target
  }

  /** Commits a delivery once; a repeated one changes nothing. Refuses what cannot be read and what speaks of something else. */
  async receive({ target, deliveryId, body }: PushDelivery): Promise<void> {
    const content = createHash('sha256').update(body).digest('hex')
    const event = await this.#t.pool.parsePush(body)
    if (event.kind !== 'observation') {
      throw new Refusal(event.kind === 'invalid' && event.fault === 'envelope' ? 'push.envelope' : 'push.payload')
    }
    checkScope(event, target)
    await Promise.all(event.blobs.map((blob) => this.#t.artifacts.put(blob)))
    const names = deliveryId === null ? [`content ${content}`] : [`content ${content}`, `id ${deliveryId}`]
    const { agentId, taskTenant: tenant, remoteId } = target
    await this.#t.runtime.perform(receivePushes, {
      target,
      keys: names.map((key) => ({ registrationId: target.id, key })),
      report: {
        agentId,
        tenant,
        source: 'push',
        command: null,
        remoteTaskId: remoteId,
        observations: [event.observation],
      },
    })
  }

  async #countEverybody(): Promise<void> {
    const now = this.#t.instruments.monotonic()
    if (now < this.#closedUntil) throw new Refusal('push.limit')
    const leftMs = await takePlace(this.#t.db.pool, 'push', limits.everybody)
    if (leftMs === null) return
    this.#closedUntil = now + leftMs
    throw new Refusal('push.limit')
  }
}

/** What a delivery names must be what was registered; what it leaves out is taken to be that. But a task it must name. */
function checkScope({ observation, tenant }: ParsedEvent & { readonly kind: 'observation' }, target: PushTarget): void {
  if (observation.taskId !== target.remoteId) throw new Refusal('push.task')
  const { contextId } = observation
  if (contextId !== null && target.contextId !== null && contextId !== target.contextId) throw new Refusal('push.scope')
  if (tenant !== undefined && tenant !== target.tenant) throw new Refusal('push.scope')
}

const receivePushes: Operation<Receipt, null> = {
  name: 'push.receive',
  async run({ tx, at }, receipts) {
    const deliveries = receipts.map(({ keys }) => keys)
    const first = await noteDeliveries(tx, deliveries, at.toISOString())
    return receipts.map(({ target, report }, i): Answer<null> => {
      const { organizationId, taskId: subjectId } = target
      const told = [{ organizationId, subjectId, fact: { type: 'agent.reported' as const, report } }]
      return { kind: 'done', result: null, effects: first[i] ? { told } : {} }
    })
  },
}
