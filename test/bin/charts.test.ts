/** The charts that a build writes: complete, readable, and the same every time. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildCharts } from '../../bin/build/charts.ts'
import { statesOf, type ChartNode } from '../../domain/chart.ts'
import type { ChartFile, ChartIndex, ChartLayout, Rect } from '../../ui/statechart/layout.ts'
import { mermaidOf } from '../../ui/statechart/mermaid.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-charts-'))
const read = <T>(name: string): T => JSON.parse(readFileSync(join(folder, name), 'utf8')) as T
const chart = (kind: string): ChartFile => {
  const entry = read<ChartIndex>('index.json').charts.find((listed) => listed.kind === kind)
  if (!entry) throw new Error(`No chart of ${kind}.`)
  return read<ChartFile>(entry.href)
}

beforeAll(() => buildCharts(folder))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const kinds = ['command', 'ownership', 'subscription', 'supervisor']
const views = kinds.flatMap((kind) => (['wide', 'tall'] as const).map((view) => [kind, view] as const))

const contains = (outer: Rect, inner: Rect): boolean =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height
const overlap = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height

function boxes(layout: ChartLayout): (node: ChartNode) => Rect {
  const placed = new Map(layout.states.map((state) => [state.id, state]))
  return (node) => {
    const found = placed.get(node.id)
    if (!found) throw new Error(`${node.id} is nowhere.`)
    return found
  }
}

describe.each(views)('%s, %s', (kind, view) => {
  const open = () => {
    const { definition, layout } = chart(kind)
    return {
      root: definition.root,
      nodes: [...statesOf(definition.root)],
      layout: layout[view],
      box: boxes(layout[view]),
    }
  }

  it('places every state inside its parent, and siblings apart', () => {
    const { nodes, layout, box } = open()
    expect(layout.states).toHaveLength(nodes.length)
    for (const node of nodes) {
      for (const [index, child] of node.children.entries()) {
        expect(contains(box(node), box(child)), `${child.id} in ${node.id}`).toBe(true)
        for (const other of node.children.slice(index + 1)) {
          expect(overlap(box(child), box(other)), `${child.id} and ${other.id}`).toBe(false)
        }
      }
    }
  })

  it('draws every transition that leads somewhere, and keeps its label inside the picture', () => {
    const { nodes, layout } = open()
    const leading = nodes.flatMap((node) => node.edges.flatMap((edge) => edge.targets.map((to) => `${edge.id}>${to}`)))
    const drawn = layout.arrows.flatMap((arrow) => arrow.edges.map((edge) => `${edge}>${arrow.target}`))
    expect(drawn.toSorted()).toEqual(leading.toSorted())
    const picture = { x: 0, y: 0, width: layout.width, height: layout.height }
    const labels = layout.arrows.flatMap(({ label }) => label ?? [])
    expect(labels.filter((label) => !contains(picture, label))).toEqual([])
    for (const { points } of layout.arrows) expect(points.length).toBeGreaterThanOrEqual(2)
  })

  it('flows away from the initial state', () => {
    const { root, box } = open()
    const axis = view === 'wide' ? 'x' : 'y'
    const initial = root.children.find((child) => child.id === root.initial)
    // An end that every state leads to by one transition of the machine itself may stand beside the start.
    const later = root.children.filter((child) => child.kind !== 'final' && child !== initial)
    for (const child of later)
      expect(box(child)[axis], child.id).toBeGreaterThanOrEqual(initial ? box(initial)[axis] : 0)
  })
})

it('shows regions as lanes, in the order of the machine', () => {
  const { definition, layout } = chart('supervisor')
  const box = boxes(layout.wide)
  const running = definition.root.children.find((child) => child.key === 'running')
  const lanes = (running?.children ?? []).map(box)
  expect(lanes.length).toBeGreaterThan(3)
  expect(lanes.map(({ y }) => y)).toEqual(lanes.map(({ y }) => y).toSorted((a, b) => a - b))
  expect(new Set(lanes.map(({ x, width }) => `${x} ${width}`)).size).toBe(1)
})

it('writes the same bytes again', async () => {
  const before = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])
  await buildCharts(folder)
  expect(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])).toEqual(before)
})

it('says a chart as Mermaid', () => {
  const text = mermaidOf(chart('command').definition)
  expect(text.split('\n').slice(0, 3)).toEqual(['stateDiagram-v2', '  direction LR', '  [*] --> command_pending'])
  expect(text).toContain('  command_dispatching --> command_uncertain: interrupted\n')
  expect(text).toContain('  command_uncertain --> [*]\n')
  expect(mermaidOf(chart('ownership').definition)).toContain('--\n')
})
