/**
 * The repository as text and syntax trees, for the tidy test. Owns finding the files and walking a tree; what is allowed
 * in one is test/tidy/floors.ts and test/tidy/habits.ts.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseSync } from 'vite'

const root = resolve(import.meta.dirname, '../..')

/** Not ours, or made by a program: nobody reads or edits what lies here. */
const skipped = new Set(['node_modules', 'dist', 'data', '.git'])
const generated = [
  'ui/statechart/layouts/',
  'ui/elements/icons.ts',
  'ui/elements/parts-icons.ts',
  'ui/pages/actors-icons.ts',
  'ui/pages/task-icons.ts',
  'test/machines/golden/',
]
export const isGenerated = (path: string): boolean => generated.some((start) => path.startsWith(start))

export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

/** One file of code. `path` is relative to the repository, with slashes. */
export interface Source {
  readonly path: string
  readonly floor: string
  readonly text: string
  readonly program: SyntaxNode
  readonly comments: readonly { readonly value: string; readonly start: number }[]
}

export function parse(path: string, text: string): Source {
  const { program, comments, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors.map((error) => error.message).join(' ')}`)
  // The parser's own types name every kind of node; a walk over all of them needs what they share.
  const tree: unknown = program
  if (!isNode(tree)) throw new Error(`${path} has no syntax tree.`)
  return { path, floor: path.includes('/') ? (path.split('/')[0] ?? '') : '', text, program: tree, comments }
}

export const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

/** Visits every node, parents first. */
export function visit(node: SyntaxNode, see: (node: SyntaxNode, parents: readonly SyntaxNode[]) => void): void {
  const walk = (each: SyntaxNode, parents: readonly SyntaxNode[]) => {
    see(each, parents)
    const inner = [...parents, each]
    for (const value of Object.values(each))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child, inner)
  }
  walk(node, [])
}

export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
export const at = ({ path, text }: Source, node: { readonly start: number }, says: string): string =>
  `${path}:${lineAt(text, node.start)} ${says}`

function filesIn(directory: string): string[] {
  return readdirSync(join(root, directory), { withFileTypes: true }).flatMap((entry) => {
    const path = directory === '' ? entry.name : `${directory}/${entry.name}`
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : filesIn(path)
    return entry.isFile() ? [path] : []
  })
}

export const files: readonly string[] = filesIn('')
export const read = (path: string): string => readFileSync(join(root, path), 'utf8')
export const sources: readonly Source[] = files
  .filter((path) => /\.(?:ts|cjs)$/.test(path) && !isGenerated(path))
  .map((path) => parse(path, read(path)))
