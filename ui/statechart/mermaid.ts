/** A chart as Mermaid text, for a ticket or a document: only the string, no renderer. Mermaid's `stateDiagram-v2` syntax. */
import { statesOf, type ChartDefinition, type ChartNode } from '../../domain/chart.ts'

const idOf = (id: string): string => id.replace(/\W/g, '_')
/** Mermaid has no escape for its own punctuation inside a label. */
const plain = (text: string): string => text.replace(/[\r\n:;#"]/g, ' ')

function stateLines(node: ChartNode, indent: string): string[] {
  const lines = node.initial === undefined ? [] : [`${indent}[*] --> ${idOf(node.initial)}`]
  for (const [index, child] of node.children.entries()) {
    if (node.kind === 'parallel' && index > 0) lines.push(`${indent}--`)
    const name = `${indent}state "${plain(child.key)}" as ${idOf(child.id)}`
    if (child.children.length === 0) lines.push(name)
    else lines.push(`${name} {`, ...stateLines(child, `${indent}  `), `${indent}}`)
  }
  return lines
}

function transitionLines(node: ChartNode): string[] {
  const ends = node.kind === 'final' ? [`  ${idOf(node.id)} --> [*]`] : []
  const transitions = node.edges.flatMap((edge) =>
    edge.targets.map((target) => {
      const guard = edge.guard === undefined ? '' : ` [${plain(edge.guard)}]`
      return `  ${idOf(edge.source)} --> ${idOf(target)}: ${plain(edge.label)}${guard}`
    }),
  )
  return [...transitions, ...ends]
}

export function mermaidOf(definition: ChartDefinition): string {
  const { root } = definition
  // Mermaid has no state for the diagram itself, so a transition of the machine's own starts at every top state.
  const fromAnywhere = root.edges.flatMap((edge) =>
    edge.targets.flatMap((target) =>
      root.children
        .filter((child) => child.kind !== 'final' && child.id !== target)
        .map((child) => `  ${idOf(child.id)} --> ${idOf(target)}: ${plain(edge.label)}`),
    ),
  )
  const below = [...statesOf(root)].slice(1).flatMap(transitionLines)
  return ['stateDiagram-v2', '  direction LR', ...stateLines(root, '  '), ...fromAnywhere, ...below, ''].join('\n')
}
