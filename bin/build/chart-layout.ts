/**
 * Lays a chart out with ELK. Owns the graph that ELK is given and the geometry that is read back; text and sizes are
 * ui/statechart/metrics.ts. The picture always flows away from the initial state: siblings are ordered breadth-first from
 * it and transitions against that order are handed to ELK reversed, because ELK's own cycle breaking put the initial
 * state last in two of four machines.
 */
import ElkModule from 'elkjs/lib/elk.bundled.js'
import type { ELK, ElkExtendedEdge, ElkNode, ElkPoint } from 'elkjs/lib/elk-api.js'
import { statesOf, type ChartDefinition, type ChartEdge, type ChartNode } from '../../domain/chart.ts'
import type { ChartLayout, PlacedArrow, PlacedState, Point } from '../../ui/statechart/layout.ts'
import { boxOf, labelOf, spacing } from '../../ui/statechart/metrics.ts'
import { withLanes } from './chart-lanes.ts'

export type Direction = 'RIGHT' | 'DOWN'

/** Transitions between the same two states: one arrow with stacked labels. */
interface Bundle {
  readonly id: string
  readonly source: string
  readonly target: string
  readonly edges: readonly ChartEdge[]
  /** ELK lays an edge out inside the innermost state that holds both of its ends. */
  readonly container: string
  readonly reversed: boolean
}

/** A definition with its tree made walkable upwards. */
class Tree {
  readonly definition: ChartDefinition
  readonly nodes: ReadonlyMap<string, ChartNode>
  readonly #parents: ReadonlyMap<string, string>

  constructor(definition: ChartDefinition) {
    const nodes = [...statesOf(definition.root)]
    this.definition = definition
    this.nodes = new Map(nodes.map((node) => [node.id, node]))
    this.#parents = new Map(nodes.flatMap((node) => node.children.map((child) => [child.id, node.id])))
  }

  parentOf(id: string): string | undefined {
    return this.#parents.get(id)
  }

  /** From the state itself up to the machine. */
  lineage(id: string): readonly string[] {
    const parent = this.#parents.get(id)
    return parent === undefined ? [id] : [id, ...this.lineage(parent)]
  }

  /** The innermost state that holds both; a state's own parent for a transition to itself. */
  containerOf(source: string, target: string): string {
    if (source === target) return this.parentOf(source) ?? source
    const above = new Set(this.lineage(source))
    return this.lineage(target).find((id) => above.has(id)) ?? this.definition.root.id
  }

  /** The child of `container` that holds `id`, or undefined when `id` is the container itself. */
  childWithin(container: string, id: string): string | undefined {
    const line = this.lineage(id)
    return line[line.indexOf(container) - 1]
  }
}

type Ends = Pick<Bundle, 'source' | 'target'>

/** Position of every state among its siblings: breadth-first from the initial one, and ends after everything else. */
function readingOrder(tree: Tree, pairs: readonly Ends[]): ReadonlyMap<string, number> {
  const order = new Map<string, number>()
  for (const parent of tree.nodes.values()) {
    const hops = siblingHops(tree, parent.id, pairs)
    const initial = parent.initial === undefined ? undefined : tree.childWithin(parent.id, parent.initial)
    const starts = [...(initial === undefined ? [] : [initial]), ...parent.children.map((child) => child.id)]
    const reached = new Set<string>()
    for (const start of starts) {
      const queue = [start]
      for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
        if (reached.has(id)) continue
        reached.add(id)
        queue.push(...(hops.get(id) ?? []))
      }
    }
    const isEnd = (id: string): boolean => tree.nodes.get(id)?.kind === 'final'
    const inOrder = [...reached].toSorted((a, b) => Number(isEnd(a)) - Number(isEnd(b)))
    for (const [index, id] of inOrder.entries()) order.set(id, index)
  }
  return order
}

/** Which child of a state leads to which other child, whatever the depth of the transition's real ends. */
function siblingHops(tree: Tree, parent: string, pairs: readonly Ends[]): ReadonlyMap<string, string[]> {
  const hops = new Map<string, string[]>()
  for (const { source, target } of pairs) {
    if (tree.containerOf(source, target) !== parent) continue
    const from = tree.childWithin(parent, source)
    const to = tree.childWithin(parent, target)
    if (from === undefined || to === undefined || from === to) continue
    hops.set(from, [...(hops.get(from) ?? []), to])
  }
  return hops
}

function bundlesOf(tree: Tree): readonly Bundle[] {
  const byEnds = new Map<string, Ends & { edges: ChartEdge[] }>()
  for (const node of tree.nodes.values()) {
    for (const edge of node.edges) {
      for (const target of edge.targets) {
        const key = JSON.stringify([node.id, target])
        const bundle = byEnds.get(key) ?? { source: node.id, target, edges: [] }
        bundle.edges.push(edge)
        byEnds.set(key, bundle)
      }
    }
  }
  const groups = [...byEnds.values()]
  const order = readingOrder(tree, groups)
  return groups.map((group, index) => {
    const container = tree.containerOf(group.source, group.target)
    const from = order.get(tree.childWithin(container, group.source) ?? '') ?? 0
    const to = order.get(tree.childWithin(container, group.target) ?? '') ?? Infinity
    return { ...group, id: `bundle ${index}`, container, reversed: from > to }
  })
}

const graphOptions = (direction: Direction): Record<string, string> => ({
  'elk.algorithm': 'layered',
  'elk.direction': direction,
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.json.edgeCoords': 'ROOT',
  'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
  'elk.layered.crossingMinimization.semiInteractive': 'true',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.nodePlacement.favorStraightEdges': 'true',
  'elk.layered.spacing.nodeNodeBetweenLayers': '28',
  'elk.layered.spacing.edgeNodeBetweenLayers': '16',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '12',
  'elk.spacing.nodeNode': '26',
  'elk.spacing.edgeNode': '18',
  'elk.spacing.edgeEdge': '14',
  'elk.spacing.edgeLabel': '4',
  'elk.spacing.labelNode': '12',
  'elk.spacing.nodeSelfLoop': '16',
  'elk.padding': '[top=12,left=12,bottom=12,right=12]',
})

const startId = (parent: string): string => `start ${parent}`
const startEdgeId = (parent: string): string => `start edge ${parent}`

function elkEdge(bundle: Bundle): ElkExtendedEdge {
  const label = labelOf(bundle.edges)
  const [from, to] = bundle.reversed ? [bundle.target, bundle.source] : [bundle.source, bundle.target]
  const layoutOptions = {
    'elk.edgeLabels.inline': String(bundle.source !== bundle.target),
    'elk.edgeLabels.placement': 'CENTER',
  }
  const { width, height } = label
  return {
    id: bundle.id,
    sources: [from],
    targets: [to],
    labels: [{ id: `label ${bundle.id}`, text: '-', width, height, layoutOptions }],
  }
}

function elkNode(node: ChartNode, bundles: readonly Bundle[]): ElkNode {
  const box = boxOf(node)
  const children = node.children.map((child) => elkNode(child, bundles))
  const edges = bundles.filter((bundle) => bundle.container === node.id).map(elkEdge)
  if (node.initial !== undefined) {
    const layoutOptions = { 'elk.layered.priority.straightness': '10', 'elk.layered.priority.direction': '10' }
    children.unshift({ id: startId(node.id), width: spacing.dot, height: spacing.dot })
    edges.push({ id: startEdgeId(node.id), sources: [startId(node.id)], targets: [node.initial], layoutOptions })
  }
  const size = children.length > 0 ? { children } : { width: box.width, height: box.height }
  return {
    id: node.id,
    ...size,
    edges,
    layoutOptions: {
      'elk.padding': `[top=${box.header + 14},left=20,bottom=20,right=20]`,
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${box.width},${box.height})`,
    },
  }
}

/** Half a pixel is finer than anyone sees, and keeps the stored file small. */
const rounded = (value: number): number => Math.round(value * 2) / 2
const pointAt = ({ x, y }: ElkPoint): Point => ({ x: rounded(x), y: rounded(y) })

function* elkNodes(
  node: ElkNode,
  origin: Point,
  depth: number,
): Generator<{ node: ElkNode; at: Point; depth: number }> {
  const at = { x: origin.x + (node.x ?? 0), y: origin.y + (node.y ?? 0) }
  yield { node, at, depth }
  for (const child of node.children ?? []) yield* elkNodes(child, at, depth + 1)
}

/** The way of an arrow as ELK drew it, in the direction in which it is read. */
function wayOf(edge: ElkExtendedEdge, reversed: boolean): readonly Point[] {
  const section = edge.sections?.[0]
  if (!section) throw new Error(`ELK returned no way for ${edge.id}.`)
  const way = [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map(pointAt)
  return reversed ? way.toReversed() : way
}

function arrowOf(edge: ElkExtendedEdge, container: ChartNode, bundles: ReadonlyMap<string, Bundle>): PlacedArrow {
  const bundle = bundles.get(edge.id)
  if (!bundle) {
    return { source: container.id, target: container.initial ?? container.id, edges: [], points: wayOf(edge, false) }
  }
  const { source, target, reversed } = bundle
  const placed = edge.labels?.[0]
  const { width, height } = labelOf(bundle.edges)
  const label = { x: rounded(placed?.x ?? 0), y: rounded(placed?.y ?? 0), width, height }
  return { source, target, edges: bundle.edges.map(({ id }) => id), points: wayOf(edge, reversed), label }
}

/** The bundled ELK is CommonJS with its class under `default`; without a web worker it posts messages to itself. */
export const startElk = (): ELK => new ElkModule.default()

export async function layOut(elk: ELK, definition: ChartDefinition, direction: Direction): Promise<ChartLayout> {
  const tree = new Tree(definition)
  const bundles = bundlesOf(tree)
  const byId = new Map(bundles.map((bundle) => [bundle.id, bundle]))
  const graph: ElkNode = await elk.layout({
    id: 'graph',
    children: [elkNode(definition.root, bundles)],
    layoutOptions: graphOptions(direction),
  })
  const states: PlacedState[] = []
  const dots: Point[] = []
  const arrows: PlacedArrow[] = []
  for (const { node, at, depth } of elkNodes(graph, { x: 0, y: 0 }, -1)) {
    const state = tree.nodes.get(node.id)
    const { width = 0, height = 0 } = node
    if (state) {
      states.push({ id: state.id, depth, ...pointAt(at), width: rounded(width), height: rounded(height) })
      arrows.push(...(node.edges ?? []).map((edge) => arrowOf(edge, state, byId)))
    } else if (depth >= 0) {
      dots.push(pointAt({ x: at.x + spacing.dot / 2, y: at.y + spacing.dot / 2 }))
    }
  }
  const [width, height] = [Math.ceil(graph.width ?? 0), Math.ceil(graph.height ?? 0)]
  return withLanes(definition, { width, height, states: states.toSorted((a, b) => a.depth - b.depth), dots, arrows })
}
