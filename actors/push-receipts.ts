/**
 * Taking what agents deliver to their push callbacks: who may deliver, how often, what a delivery must speak of, and
 * committing it by the door that every observation goes through. Does not know HTTP (http/push-receiver.ts) or how a callback
 * came to be (push.ts).
 */
import { Refusal } from '../domain/refusal.ts'
import type { Report } from '../domain/fact.ts'
import type { ArtifactStore } from '../persistence/artifacts.ts'
import type { Database } from '../persistence/database.ts'
import { Outage } from '../persistence/outage.ts'
import { findTarget, noteDeliveries, type DeliveryKey, type PushTarget } from '../persistence/push.ts'
import type { AgentDoor } from './credentials.ts'
import { weightOfReport } from './loop/flight-weight.ts'
import { tellAhead } from './long-history.ts'
import { isCredentialOf, type PushOptions } from './push-credential.ts'
import type { RateCounter } from './rate-counter.ts'
import type { Answer, Operation } from './loop/operation.ts'
import type { Instruments, Runtime } from './loop/runtime.ts'
import type { SeenEvent } from './threads/messages.ts'
import type { ParserPool } from './threads/pool.ts'

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface ReceiptTools {
  readonly db: Database
  readonly runtime: Runtime
  readonly pool: ParserPool
  readonly artifacts: ArtifactStore
  readonly instruments: Instruments
  readonly rates: RateCounter
  readonly door: Pick<AgentDoor, 'masked'>
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

/** No thread has read the delivery to its end: that says nothing of the event, which is to come again. */
class ParsingLost extends Outage {
  override readonly name = 'ParsingLost'
  constructor(end: string) {
    super(`A delivery was not parsed (${end}).`)
  }
}

interface Receipt {
  readonly target: PushTarget
  /** Null of what is told ahead: delivered it is with its last commit, and comes again if there is none. */
  readonly delivery: DeliveryKey | null
  readonly report: Report
}

export class PushReceipts {
  readonly #t: ReceiptTools

  constructor(tools: ReceiptTools) {
    this.#t = tools
  }

  /**
   * Says who delivers, before a byte of the body is read: refuses when push is off, when too much arrives, when the
   * credential is not the registration's. Whoever presents a wrong one learns nothing of which registrations there are: no
   * row is looked up for them.
   */
  async admit(registrationId: string, presented: readonly string[]): Promise<PushTarget> {
    const { push, db, rates } = this.#t
    if (!push) throw new Refusal('push.off')
    if (!(await rates.take('push'))) throw new Refusal('push.limit')
    if (!isCredentialOf(push, registrationId, presented)) throw new Refusal('push.unauthenticated')
    const target = uuid.test(registrationId) ? await findTarget(db.pool, registrationId) : null
    if (!target) throw new Refusal('push.unauthenticated')
    if (!(await rates.take('registration', target.id))) throw new Refusal('push.limit')
    return target
  }

  /** Commits a delivery once; a repeated one changes nothing. Refuses what cannot be read and what speaks of something else. */
  receive(delivery: PushDelivery): Promise<void> {
    const text = { bytes: delivery.body.length, agentId: delivery.target.agentId }
    return this.#t.pool.heavy.take(text, () => this.#receive(delivery))
  }

  async #receive({ target, deliveryId, body }: PushDelivery): Promise<void> {
    const event = await this.#t.pool.parsePush(await this.#t.door.masked(target.agentId, body))
    if (event.kind === 'invalid' && event.lost !== undefined) throw new ParsingLost(event.lost)
    if (event.kind !== 'observation') {
      throw new Refusal(event.kind === 'invalid' && event.fault === 'envelope' ? 'push.envelope' : 'push.payload')
    }
    checkScope(event, target)
    await this.#t.artifacts.putAll(event.blobs)
    // Who names deliveries says which are the same: of two with one content both may be meant, a state for the second time.
    const key = deliveryId === null ? `content ${event.push?.digest ?? ''}` : `id ${deliveryId}`
    const { agentId, taskTenant: tenant, remoteId } = target
    const report = { agentId, tenant, source: 'push' as const, command: null, remoteTaskId: remoteId }
    const { runtime } = this.#t
    await tellAhead(event, undefined, (piece) =>
      runtime.perform(receivePushes, { target, delivery: null, report: { ...report, ...piece } }),
    )
    await runtime.perform(receivePushes, {
      target,
      delivery: { registrationId: target.id, key },
      report: { ...report, observations: [event.observation] },
    })
  }
}

/** What a delivery names must be what was registered; what it leaves out is taken to be that. But a task it must name. */
function checkScope({ observation, push }: SeenEvent, target: PushTarget): void {
  if (observation.taskId !== target.remoteId) throw new Refusal('push.task')
  const { contextId } = observation
  if (contextId !== null && target.contextId !== null && contextId !== target.contextId) throw new Refusal('push.scope')
  const tenant = push?.tenant ?? null
  if (tenant !== null && tenant !== target.tenant) throw new Refusal('push.scope')
}

const receivePushes: Operation<Receipt, null> = {
  name: 'push.receive',
  weigh: ({ report }) => weightOfReport(report),
  async run({ tx, at }, receipts) {
    const deliveries = receipts.flatMap(({ delivery }) => delivery ?? [])
    const noted = deliveries.length > 0 ? await noteDeliveries(tx, deliveries, at.toISOString()) : []
    const first = new Map(deliveries.map((delivery, i) => [delivery, noted[i]]))
    return receipts.map(({ target, delivery, report }): Answer<null> => {
      const { organizationId, taskId: subjectId } = target
      const told = [{ organizationId, subjectId, fact: { type: 'agent.reported' as const, report } }]
      return { kind: 'done', result: null, effects: delivery === null || first.get(delivery) ? { told } : {} }
    })
  },
}
