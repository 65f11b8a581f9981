/**
 * A statechart and an actor's history as plain JSON, from the server to a picture: no functions, no secrets. Owns the
 * shapes, the words for events, and what a definition says about a log. Does not own the reading of a machine
 * (machines/chart.ts), where things are drawn (bin/build/charts.ts) or the drawing (ui/statechart).
 */
export type NodeKind = 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
export type EdgeKind = 'event' | 'always' | 'after' | 'done' | 'error' | 'wildcard'

export interface ChartEdge {
  /** `source|event|order`, stable within one definition. */
  readonly id: string
  readonly source: string
  /** Empty for a transition that stays where it is and only acts. */
  readonly targets: readonly string[]
  readonly kind: EdgeKind
  /** XState's own descriptor, for instance `xstate.after.5000.command.waiting`. */
  readonly event: string
  readonly label: string
  readonly guard?: string
  readonly actions: readonly string[]
  readonly order: number
}

export interface ChartNode {
  readonly id: string
  readonly key: string
  readonly kind: NodeKind
  readonly initial?: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly entry: readonly string[]
  readonly exit: readonly string[]
  readonly work: readonly string[]
  readonly edges: readonly ChartEdge[]
  readonly children: readonly ChartNode[]
}

export interface ChartDefinition {
  readonly id: string
  readonly version: string
  readonly description?: string
  readonly root: ChartNode
}

/** A state value: the name of a leaf, or a region's children by name. */
export type StateValue = string | { readonly [region: string]: StateValue }

/** One committed step of an actor's log. */
export interface ActorStep {
  readonly revision: number
  readonly at: string
  readonly event: { readonly type: string; readonly [key: string]: unknown }
  /** Who or what sent the event: a person's name, `worker`, `timer`, `reaction`. */
  readonly cause: string
  readonly value: StateValue
  readonly facts: readonly string[]
  /** Ids of the chart's edges that the step took, in order. */
  readonly edges: readonly string[]
  readonly machineVersion: string
}

/** An actor of a list: where it is, and whether somebody should look. */
export interface ActorSummary {
  readonly kind: string
  readonly id: string
  readonly value: StateValue
  readonly status: 'active' | 'done'
  readonly revision: number
  readonly machineVersion: string
  /** Of its last step. */
  readonly updatedAt: string
  /** The same, but of what is tried in vain: since when that is so. */
  readonly movedAt: string
  /** The actor needs a person's eye: uncertain, failed, or its lease ran out. */
  readonly attention: boolean
  /** Who holds its work is not heard of any more, or has stopped renewing its lease. */
  readonly silent: boolean
  /** It is due for long, and nobody holds it: no worker runs, or none has a place for it. */
  readonly waits: boolean
  readonly title: string
}

/** One actor whole: what it holds, what it waits for, what can happen next. */
export interface ActorDetail extends ActorSummary {
  readonly createdAt: string
  readonly context: Record<string, unknown>
  readonly work: { readonly id: string; readonly startedAt: string | null } | null
  readonly timers: readonly { readonly id: string; readonly dueAt: string }[]
  readonly lease: { readonly owner: string; readonly until: string } | null
  readonly next: readonly { readonly event: string; readonly label: string; readonly guard?: string }[]
  readonly agentId: string | null
  /** Null where it is about none. */
  readonly agentName: string | null
  readonly taskId: string | null
}

/** What a person reads for an event: XState's own descriptors are sentences about its insides, not about the machine. */
export interface EventWords {
  readonly kind: EdgeKind
  readonly label: string
}

/** `90000` → `1.5 min`. Milliseconds in, the largest unit that keeps the number short out. */
export function durationWords(delayMs: number): string {
  const units = [
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  for (const [unit, sizeMs] of units) {
    if (delayMs >= sizeMs) return `${Number((delayMs / sizeMs).toFixed(1))} ${unit}`
  }
  return `${delayMs} ms`
}

/** An invoked actor without an id of its own is called `0.machine.state`: its state's name says more than the number. */
const lastName = (path: string): string => path.split('.').at(-1) ?? path

function delayWords(rest: string): string {
  const delay = rest.split('.')[0] ?? rest
  return /^\d+$/.test(delay) ? durationWords(Number(delay)) : delay
}

const ownEvents: readonly (readonly [prefix: string, kind: EdgeKind, label: (rest: string) => string])[] = [
  ['xstate.init', 'event', () => 'created'],
  ['xstate.after.', 'after', (rest) => `after ${delayWords(rest)}`],
  ['xstate.done.actor.', 'done', (rest) => `${lastName(rest)} done`],
  ['xstate.error.actor.', 'error', (rest) => `${lastName(rest)} failed`],
  ['xstate.done.state.', 'done', (rest) => `${lastName(rest)} done`],
  ['xstate.snapshot.', 'event', (rest) => `${lastName(rest)} reports`],
]

/** Turns an event's type, or a transition's descriptor, into words: `xstate.done.actor.deliver` → `deliver done`. */
export function describeEvent(type: string): EventWords {
  if (type === '') return { kind: 'always', label: 'always' }
  if (type === '*') return { kind: 'wildcard', label: 'any event' }
  const own = ownEvents.find(([prefix]) => type.startsWith(prefix))
  if (own) return { kind: own[1], label: own[2](type.slice(own[0].length)) }
  return { kind: type.endsWith('.*') ? 'wildcard' : 'event', label: type }
}

/** A state and everything inside it, outermost first. */
export function* statesOf(node: ChartNode): Generator<ChartNode> {
  yield node
  for (const child of node.children) yield* statesOf(child)
}

/** A value as paths, one a live leaf: `{a: {b: 'x', c: 'y'}}` → `[['a','b','x'],['a','c','y']]`. Needs no definition. */
export function pathsOf(value: StateValue): readonly (readonly string[])[] {
  if (typeof value === 'string') return [[value]]
  return Object.entries(value).flatMap(([key, inner]) => {
    const below = pathsOf(inner)
    return below.length === 0 ? [[key]] : below.map((path) => [key, ...path])
  })
}

/** `backingOff` → `backing off`, `not_sent` → `not sent`: a state's or a guard's name as a person reads it. */
export const spaced = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .toLowerCase()

/** `polling › backing off`: where an actor is, for reading. */
export const pathWords = (path: readonly string[]): string => path.map(spaced).join(' › ')

/** The nodes that a value names, the root included; a name the definition does not know ends its path. */
export function activeNodes(definition: ChartDefinition, value: StateValue): readonly ChartNode[] {
  const active = new Set([definition.root])
  for (const path of pathsOf(value)) {
    let node: ChartNode | undefined = definition.root
    for (const key of path) {
      node = node?.children.find((child) => child.key === key)
      if (node) active.add(node)
    }
  }
  return [...active]
}

/** Active states inside which no other state is active: where the actor really is. */
export function liveLeaves(active: readonly ChartNode[]): readonly ChartNode[] {
  const ids = new Set(active.map((node) => node.id))
  return active.filter((node) => !node.children.some((child) => ids.has(child.id)))
}

/** A state's ancestors and itself, innermost first: the order in which a statechart looks for a transition. */
function lineage(definition: ChartDefinition, leaf: ChartNode): readonly ChartNode[] {
  const climb = (node: ChartNode): ChartNode[] | null => {
    if (node === leaf) return [node]
    for (const child of node.children) {
      const found = climb(child)
      if (found) return [...found, node]
    }
    return null
  }
  return climb(definition.root) ?? [leaf]
}

/** The edges of one state that an event may take; an exact name hides wildcards, as in XState's getCandidates. */
function answering(node: ChartNode, eventType: string): readonly ChartEdge[] {
  const exact = node.edges.filter((edge) => edge.event === eventType)
  if (exact.length > 0) return exact
  return node.edges
    .filter(
      (edge) => edge.event === '*' || (edge.event.endsWith('.*') && eventType.startsWith(edge.event.slice(0, -1))),
    )
    .toSorted((a, b) => b.event.length - a.event.length)
}

/** A definition with what a derivation looks up more than once. */
interface Lookup {
  readonly definition: ChartDefinition
  readonly nodes: ReadonlyMap<string, ChartNode>
  readonly after: ReadonlySet<string>
  readonly refused: (edge: ChartEdge) => boolean
}

/** What becomes active when a state is entered: itself, its initial state and so on inwards, every region of a parallel. */
function enteredBy(at: Lookup, node: ChartNode): readonly ChartNode[] {
  if (node.kind === 'parallel') return [node, ...node.children.flatMap((child) => enteredBy(at, child))]
  const initial = node.initial === undefined ? undefined : at.nodes.get(node.initial)
  return initial ? [node, ...enteredBy(at, initial)] : [node]
}

/** Eventless hops after a transition are few in a sane machine; the bound stops a chart of always-loops. */
const hopLimit = 8

/** The edges followed from an edge to where the step ended, itself first; null when it cannot end there. */
function follow(at: Lookup, edge: ChartEdge, hops = 0): readonly string[] | null {
  if (hops > hopLimit) return null
  const targets = edge.targets.flatMap((id) => at.nodes.get(id) ?? [])
  if (targets.length === 0) return null
  const entered = targets.flatMap((node) => enteredBy(at, node))
  if (entered.every((node) => at.after.has(node.id) || node.kind === 'history')) return [edge.id]
  const inward = entered.toReversed()
  const outward = targets.flatMap((node) => lineage(at.definition, node).slice(1))
  for (const node of [...inward, ...outward]) {
    for (const next of node.edges) {
      if (next.kind !== 'always' && next.event !== `xstate.done.state.${node.id}`) continue
      const rest = follow(at, next, hops + 1)
      if (rest) return [edge.id, ...rest]
    }
  }
  return null
}

/**
 * The edges that one step most likely took, in order. The log stores an event and the value after it, and no context: the answer
 * is the first transition, innermost state first, that leads from `before` to `after`. Two with the same event and the same end
 * cannot be told apart where both wanted to know the context; then the earlier one is named.
 * @param before null for the step that created the actor.
 * @param refused says of an edge that this step's event cannot have taken it (machines/chart.ts).
 */
export function edgesTaken(
  definition: ChartDefinition,
  before: StateValue | null,
  eventType: string,
  after: StateValue,
  refused: (edge: ChartEdge) => boolean = () => false,
): string[] {
  if (before === null) return []
  const activeAfter = activeNodes(definition, after)
  const at: Lookup = {
    definition,
    refused,
    nodes: new Map([...statesOf(definition.root)].map((node) => [node.id, node])),
    after: new Set(activeAfter.map((node) => node.id)),
  }
  const leavesAfter = new Set(liveLeaves(activeAfter).map((node) => node.id))
  const taken = new Set<string>()
  for (const leaf of liveLeaves(activeNodes(definition, before))) {
    for (const id of edgesFrom(at, leaf, leavesAfter, eventType)) taken.add(id)
  }
  return [...taken]
}

/**
 * The edge that a step took whose neighbour is not kept (actors/loop/routine.ts): where the actor stood before is not known, so it is
 * named only where no other edge could lead there by that event.
 */
export function onlyEdge(
  definition: ChartDefinition,
  eventType: string,
  after: StateValue,
  refused: (edge: ChartEdge) => boolean,
): string[] {
  const active = new Set(activeNodes(definition, after).map((node) => node.id))
  const edges = [...statesOf(definition.root)].flatMap((node) => node.edges)
  const fitting = edges.filter(
    (edge) =>
      edge.event === eventType &&
      edge.targets.length > 0 &&
      edge.targets.every((id) => active.has(id)) &&
      !refused(edge),
  )
  const [edge] = fitting
  return edge && fitting.length === 1 ? [edge.id] : []
}

function edgesFrom(
  at: Lookup,
  leaf: ChartNode,
  leavesAfter: ReadonlySet<string>,
  eventType: string,
): readonly string[] {
  const candidates = lineage(at.definition, leaf)
    .flatMap((node) => answering(node, eventType))
    .filter((edge) => !at.refused(edge))
  for (const edge of candidates) {
    // A transition without a target leaves every state as it was.
    const path = edge.targets.length > 0 ? follow(at, edge) : leavesAfter.has(leaf.id) ? [edge.id] : null
    if (path) return path
  }
  // An action may raise an event of its own inside the step, so the end is not always the target's initial state.
  const loose = candidates.find((edge) => edge.targets.some((id) => at.after.has(id)))
  return loose ? [loose.id] : []
}

/** Whether a machine in this value is finished: no event moves it any more. */
export function isDone(definition: ChartDefinition, value: StateValue): boolean {
  const active = new Set(activeNodes(definition, value))
  const done = (node: ChartNode): boolean => {
    if (node.kind === 'final') return true
    if (node.kind === 'parallel') return node.children.every(done)
    return node.children.some((child) => active.has(child) && child.kind === 'final')
  }
  return done(definition.root)
}

/** One way on from where an actor is. `to` names the states it leads to; empty where the actor stays. */
export interface NextEvent {
  readonly event: string
  readonly label: string
  readonly guard?: string
  readonly to: readonly string[]
  readonly edge: string
}

/**
 * Every event that the actor would answer now, innermost state first. Guards are named, not evaluated. A transition that
 * an inner state's unguarded one always wins over is left out.
 */
export function whatCanHappen(definition: ChartDefinition, value: StateValue): readonly NextEvent[] {
  const found = new Map<string, NextEvent>()
  if (isDone(definition, value)) return []
  const names = new Map([...statesOf(definition.root)].map((node) => [node.id, node.key]))
  for (const leaf of liveLeaves(activeNodes(definition, value))) {
    const settled = new Set<string>()
    for (const edge of lineage(definition, leaf).flatMap((node) => node.edges)) {
      if (edge.kind === 'always' || settled.has(edge.event)) continue
      if (edge.guard === undefined) settled.add(edge.event)
      const guard = edge.guard === undefined ? {} : { guard: edge.guard }
      const to = edge.targets.map((id) => names.get(id) ?? id)
      found.set(edge.id, { event: edge.event, label: edge.label, ...guard, to, edge: edge.id })
    }
  }
  return [...found.values()]
}
