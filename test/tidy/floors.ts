/**
 * The floors: who may import whom, as ARCHITECTURE.md tells it, in a table. Owns the table and the check; .oxlintrc.json
 * says the same to an editor while one types, and the tidy test sees that both refuse the same imports.
 */
import { dirname, join } from 'node:path/posix'
import { at, isNode, type Source, visit } from './sources.ts'

interface Floor {
  /** Floors below, or files of one by a prefix. */
  readonly floors: readonly string[]
  /** Packages by name, or a name with `/` behind it for what a package exports under paths; null: any. */
  readonly packages: readonly string[] | null
  /** May it use Node.js's own modules? `a2a`, `domain` and `ui` run in browsers; a machine does no I/O. */
  readonly node: boolean
}

export const floors: Readonly<Record<string, Floor>> = {
  a2a: { floors: [], packages: ['zod/mini', 'jose', 'canonicalize'], node: false },
  domain: { floors: ['a2a/'], packages: ['zod/mini'], node: false },
  machines: { floors: ['domain/'], packages: ['xstate'], node: false },
  persistence: {
    floors: ['domain/'],
    packages: ['zod', 'zod/mini', 'slonik', '@standard-schema/spec', 'pg', 'pg-query-stream', '@electric-sql/'],
    node: true,
  },
  actors: {
    floors: ['machines/', 'persistence/', 'domain/', 'a2a/'],
    packages: ['xstate', 'zod', 'zod/mini', 'undici', 'piscina', 'jose', 'openid-client', 'uuid'],
    node: true,
  },
  http: {
    floors: ['actors/', 'persistence/', 'domain/', 'a2a/'],
    packages: ['fastify', '@fastify/', 'fastify-type-provider-zod', 'prom-client', 'zod', 'zod/mini'],
    node: true,
  },
  ui: {
    floors: ['domain/', 'a2a/extensions/', 'a2a/sse.ts'],
    packages: ['lit', 'lit/', '@xstate/store', 'zod/mini'],
    node: false,
  },
  wrapper: { floors: ['a2a/', 'machines/', 'persistence/', 'domain/'], packages: null, node: true },
}

/** Every place that names a module: imports and exports of every kind, dynamic imports, and types by import(). */
export function importsOf(source: Source): { readonly name: string; readonly start: number }[] {
  const found: { name: string; start: number }[] = []
  visit(source.program, (node) => {
    const names = [
      'ImportDeclaration',
      'ExportNamedDeclaration',
      'ExportAllDeclaration',
      'ImportExpression',
      'TSImportType',
    ]
    if (!names.includes(node.type)) return
    const literal = node.source ?? node.argument
    if (isNode(literal) && typeof literal.value === 'string') found.push({ name: literal.value, start: node.start })
  })
  return found
}

const begins = (name: string, allowed: readonly string[]): boolean =>
  allowed.some((each) => (each.endsWith('/') ? name.startsWith(each) : name === each))

function isAllowed(source: Source, name: string, floor: Floor): boolean {
  if (name.startsWith('node:')) return floor.node
  if (!name.startsWith('.')) return floor.packages === null || begins(name, floor.packages)
  const target = join(dirname(source.path), name)
  return target.startsWith(`${source.floor}/`) || begins(target, floor.floors)
}

/** Imports that a floor may not have. bin/ and test/ may import everything; bin/ itself is imported by nobody else. */
export function wrongFloors(source: Source): string[] {
  const floor = floors[source.floor]
  if (!floor) return []
  return importsOf(source)
    .filter(({ name }) => !isAllowed(source, name, floor))
    .map((found) => at(source, found, `${source.floor}/ may not import ${found.name}`))
}
