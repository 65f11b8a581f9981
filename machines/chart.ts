/**
 * A machine as a picture's definition: what XState knows about states and transitions, as JSON. Owns the reading of a
 * machine; what a definition then says about a log is domain/chart.ts, where it is drawn is bin/build/charts.ts.
 * Functions never leave: a guard or an action is its name, and XState's own plumbing is left out.
 */
import type { AnyStateMachine, AnyStateNode, EventObject } from 'xstate'
import { describeEvent, type ChartDefinition, type ChartEdge, type ChartNode } from '../domain/chart.ts'

/** What a function is called when it was written in place: JavaScript names it after the property that holds it. */
const placeNames: ReadonlySet<string> = new Set([
  '',
  'guard',
  'actions',
  'entry',
  'exit',
  'on',
  'always',
  'invoke',
  'src',
])

const isRecord = (value: unknown): value is Record<string, unknown> =>
  (typeof value === 'object' || typeof value === 'function') && value !== null

/** The name of a guard or an action in any of the forms XState takes: a string, `{type, params}`, a function. */
function nameOf(reference: unknown): string {
  if (typeof reference === 'string') return reference
  if (!isRecord(reference)) return 'inline'
  if (Array.isArray(reference['guards'])) return combined(String(reference['name']), reference['guards'])
  if (typeof reference['type'] === 'string') return reference['type']
  const { name } = reference
  return typeof name !== 'string' || placeNames.has(name) ? 'inline' : name
}

/** `and([a, b])` → `a and b`, `not(a)` → `not a`. */
function combined(operator: string, guards: readonly unknown[]): string {
  const names = guards.map((guard) =>
    isRecord(guard) && Array.isArray(guard['guards']) ? `(${nameOf(guard)})` : nameOf(guard),
  )
  return operator === 'not' ? `not ${names.join(' ')}` : names.join(` ${operator} `)
}

/**
 * Action names worth reading. XState's own (`xstate.raise`, `xstate.cancel`, `xstate.spawnChild`, an inline
 * `xstate.assign`) say how a machine is built; a fact, which is `xstate.emit`, is kept when it is written as plain data.
 */
function actionNames(actions: readonly unknown[]): string[] {
  return actions.flatMap((action) => {
    const name = nameOf(action)
    if (!name.startsWith('xstate.')) return [name]
    const fact =
      name === 'xstate.emit' && isRecord(action) && isRecord(action['event']) ? action['event']['type'] : undefined
    return typeof fact === 'string' ? [`say ${fact}`] : []
  })
}

/** A transition of XState's, down to what a definition shows. */
interface TransitionLike {
  readonly target?: readonly AnyStateNode[] | undefined
  readonly guard?: unknown
  readonly actions: readonly unknown[]
}

/** XState names the end of unnamed work after the state it ran in; the work's own name says what ended. */
const spoken = (node: AnyStateNode, event: string): string =>
  node.invoke.reduce((named, invoked) => named.replace(`.actor.${invoked.id}`, `.actor.${workName(invoked)}`), event)

function edgesOf(node: AnyStateNode, event: string, transitions: readonly TransitionLike[]): ChartEdge[] {
  return transitions.map((transition, order) => ({
    id: `${node.id}|${event}|${order}`,
    source: node.id,
    targets: (transition.target ?? []).map((target) => target.id),
    ...describeEvent(spoken(node, event)),
    event,
    ...(transition.guard === undefined ? {} : { guard: nameOf(transition.guard) }),
    actions: actionNames(transition.actions),
    order,
  }))
}

/** Work is invoked under the name of the work; without a name XState numbers it, and what it runs says more. */
const workName = (invoked: { readonly id: string; readonly src: unknown }): string =>
  /^\d+\./.test(invoked.id) ? nameOf(invoked.src) : invoked.id

function nodeOf(node: AnyStateNode): ChartNode {
  const initial = node.type === 'compound' ? node.initial.target?.[0]?.id : undefined
  return {
    id: node.id,
    key: node.key,
    kind: node.type,
    ...(initial === undefined ? {} : { initial }),
    ...(node.description === undefined ? {} : { description: node.description }),
    tags: [...node.tags],
    entry: actionNames(node.entry),
    exit: actionNames(node.exit),
    work: node.invoke.map(workName),
    edges: [
      ...[...node.transitions].flatMap(([event, transitions]) => edgesOf(node, event, transitions)),
      ...edgesOf(node, '', node.always ?? []),
    ],
    children: Object.values(node.states).map(nodeOf),
  }
}

/** Says of an edge that an event cannot have taken it. */
export type Refused = (edge: Pick<ChartEdge, 'id'>, event: EventObject) => boolean

/** Whatever a guard reads of it, it learns nothing: a log holds no context. */
const unknown: object = new Proxy(
  {},
  {
    get: () => {
      throw new Error('A log holds no context.')
    },
  },
)

/**
 * A guard to which the event says enough is asked again, about the event that a log holds. One that wants to know the context refuses
 * nothing, and neither does a combination of guards.
 */
export function refusedBy(machine: AnyStateMachine): Refused {
  const guards = new Map<string, unknown>()
  const gather = (node: AnyStateNode): void => {
    for (const [event, transitions] of [...node.transitions, ['', node.always ?? []] as const])
      for (const [order, { guard }] of transitions.entries()) guards.set(`${node.id}|${event}|${order}`, guard)
    for (const child of Object.values(node.states)) gather(child)
  }
  gather(machine.root)
  const named: Readonly<Record<string, unknown>> = machine.implementations.guards
  return ({ id }, event) => {
    const written = guards.get(id)
    const guard = typeof written === 'string' ? named[written] : written
    if (typeof guard !== 'function' || 'check' in guard) return false
    try {
      return guard({ context: unknown, event }) === false
    } catch {
      return false
    }
  }
}

/** The machine as a chart's definition: JSON, no functions, no context. A machine without a version is version `0`. */
export function chartOf(machine: AnyStateMachine): ChartDefinition {
  const description = machine.root.description
  return {
    id: machine.id,
    version: machine.version ?? '0',
    ...(description === undefined ? {} : { description }),
    root: nodeOf(machine.root),
  }
}
