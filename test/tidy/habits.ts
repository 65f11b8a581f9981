/**
 * Habits that rot: each check reads one source and names every place that has it. Owns the checks, not what they are for:
 * the reasons stand in CONTRIBUTING.md.
 */
import { basename } from 'node:path/posix'
import { at, isNode, lineAt, type Source, type SyntaxNode, visit } from './sources.ts'

export const fileLinesMax = 400
export const functionLinesMax = 70

const nameOf = (node: unknown): string => (isNode(node) && typeof node.name === 'string' ? node.name : '')
/** `a.b` of a member expression whose two sides are plain names, else ''. */
const dotted = (node: unknown): string =>
  isNode(node) && node.type === 'MemberExpression' ? `${nameOf(node.object)}.${nameOf(node.property)}` : ''
const calleeOf = (node: SyntaxNode): string =>
  node.type === 'CallExpression' ? dotted(node.callee) || nameOf(node.callee) : ''
const argumentsOf = (node: SyntaxNode): readonly unknown[] => (Array.isArray(node.arguments) ? node.arguments : [])

function collect(source: Source, judge: (node: SyntaxNode, parents: readonly SyntaxNode[]) => string | null): string[] {
  const found: string[] = []
  visit(source.program, (node, parents) => {
    const says = judge(node, parents)
    if (says !== null) found.push(at(source, node, says))
  })
  return found
}

export function tooLong(source: Source): string[] {
  const lines = source.text.trimEnd().split('\n').length
  return lines > fileLinesMax ? [`${source.path} has ${lines} lines, ${fileLinesMax} are allowed`] : []
}

const functions = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']
/** `describe` takes a function only to group: what it holds are the tests, and those are measured. */
const isGroup = (parent: SyntaxNode | undefined): boolean =>
  parent?.type === 'CallExpression' && /^describe\b/.test(calleeOf(parent) || groupName(parent.callee))
const groupName = (callee: unknown): string =>
  isNode(callee) && callee.type === 'CallExpression' ? dotted(callee.callee) || nameOf(callee.callee) : ''

export const longFunctions = (source: Source): string[] =>
  collect(source, (node, parents) => {
    if (!functions.includes(node.type) || isGroup(parents.at(-1))) return null
    const lines = lineAt(source.text, node.end) - lineAt(source.text, node.start) + 1
    return lines > functionLinesMax ? `has a function of ${lines} lines, ${functionLinesMax} are allowed` : null
  })

export function withoutOpening(source: Source): string[] {
  const text = source.text.replace(/^#!.*\n/, '')
  return /^\/[/*]/.test(text) ? [] : [`${source.path} does not open with a comment that says what it owns`]
}

const buckets = /^(?:index|utils?|helpers?|common|shared|types?|misc|lib|constants|interfaces)$/i
export function bucketNames(path: string): string[] {
  const names = [...path.split('/').slice(0, -1), basename(path).replace(/\..*$/, '')]
  return /\.(?:ts|cjs|css)$/.test(path) && names.some((name) => buckets.test(name)) ? [`${path} is a bucket`] : []
}

const declarations = ['ClassDeclaration', 'TSInterfaceDeclaration', 'TSTypeAliasDeclaration', 'FunctionDeclaration']
export const bannedNames = (source: Source): string[] =>
  collect(source, (node) => {
    if (![...declarations, 'VariableDeclarator'].includes(node.type)) return null
    const name = nameOf(node.id)
    const isType = node.type !== 'VariableDeclarator' && node.type !== 'FunctionDeclaration'
    const banned =
      /(?:Manager|Service|Helper|Processor|Utils?)$/.test(name) || (isType && /^(?:I[A-Z][a-z]|Base[A-Z])/.test(name))
    return banned ? `is named ${name}` : null
  })

/** Only the composition roots read argv and environment; what they read is handed down as values. */
export const ambientReads = (source: Source): string[] =>
  ['bin', 'test', ''].includes(source.floor)
    ? []
    : collect(source, (node) => {
        if (['process.env', 'process.argv'].includes(dotted(node))) return `reads ${dotted(node)}`
        const imports = node.type === 'ImportDeclaration' && isNode(node.source) && node.source.value === 'node:process'
        return imports ? 'imports node:process' : null
      })

const clocks = ['Date.now', 'Math.random', 'crypto.randomUUID', 'randomUUID', 'randomBytes', 'uuidv7', 'uuidv4']
/**
 * Below the runtime, time and ids are arguments, so that a step is a pure function of a row. A driver may measure how
 * long it has waited (performance.now): no row ever holds that.
 */
export const clocksBelowRuntime = (source: Source): string[] =>
  ['a2a', 'domain', 'machines', 'persistence'].includes(source.floor)
    ? collect(source, (node) => {
        const callee = calleeOf(node)
        if (clocks.includes(callee) || (callee === 'Date' && node.type === 'CallExpression')) return `calls ${callee}()`
        const isNow = node.type === 'NewExpression' && nameOf(node.callee) === 'Date' && argumentsOf(node).length === 0
        return isNow ? 'calls new Date()' : null
      })
    : []

const clients = ['undici', 'node:http', 'node:https', 'node:http2', 'node:dgram']
/**
 * The network has one door (actors/outbound.ts, and actors/outbound/ behind it): a second client, however careful, would be past its policy. The HTTP floor
 * may name node:http, for the requests that come in.
 */
export function secondDoors(source: Source): string[] {
  const { floor, path } = source
  if (!['a2a', 'domain', 'machines', 'persistence', 'actors', 'http'].includes(floor)) return []
  if (/^actors\/outbound(?:\.ts$|\/)/.test(path)) return []
  const banned = floor === 'http' ? ['undici', 'node:https', 'node:http2', 'node:dgram'] : clients
  return collect(source, (node) => {
    if (['fetch', 'globalThis.fetch'].includes(calleeOf(node))) return 'calls fetch()'
    const { source: module } = node
    const imports =
      ['ImportDeclaration', 'ImportExpression'].includes(node.type) && isNode(module) ? module.value : null
    return typeof imports === 'string' && banned.includes(imports) ? `imports ${imports}` : null
  })
}

/** A transaction that asks the pool waits for a connection while it has one: a few of them at once wait for each other. */
export const poolsInTransactions = (source: Source): string[] =>
  collect(source, (node) => {
    if (node.type !== 'CallExpression' || !isNode(node.callee) || nameOf(node.callee.property) !== 'transaction')
      return null
    const textOf = (each: unknown): string => (isNode(each) ? source.text.slice(each.start, each.end) : '')
    const pool = textOf(node.callee.object)
    let asks = false
    for (const work of argumentsOf(node))
      if (isNode(work)) visit(work, (inner) => void (asks ||= textOf(inner) === pool))
    return asks ? 'asks the pool inside of a transaction' : null
  })

export const escapesFromTypes = (source: Source): string[] => [
  ...collect(source, (node) => {
    if (node.type === 'TSAnyKeyword') return 'says any'
    const inner = node.type === 'TSAsExpression' ? node.expression : null
    const twice = isNode(inner) && inner.type === 'TSAsExpression' && isNode(inner.typeAnnotation)
    return twice && isNode(inner.typeAnnotation) && inner.typeAnnotation.type === 'TSUnknownKeyword'
      ? 'says as unknown as'
      : null
  }),
  ...source.comments
    .filter(({ value }) => /@ts-(?:ignore|expect-error|nocheck)\b/.test(value))
    .map((comment) => at(source, comment, 'silences the type checker')),
]

export const unfinished = (source: Source): string[] =>
  source.comments
    .filter(({ value }) => /\b(?:TODO|FIXME|XXX|HACK)\b/.test(value))
    .map((comment) => at(source, comment, 'leaves work behind in a comment'))

/** A failure that nobody hears of. A catch that answers with a value says in its own line why that is right. */
export const swallowed = (source: Source): string[] =>
  collect(source, (node) => {
    const isEmpty = (block: unknown) =>
      isNode(block) && block.type === 'BlockStatement' && Array.isArray(block.body) && block.body.length === 0
    if (node.type === 'CatchClause' && isEmpty(node.body)) return 'swallows an error'
    const [handler] = argumentsOf(node)
    const isCatch = node.type === 'CallExpression' && isNode(node.callee) && nameOf(node.callee.property) === 'catch'
    return isCatch && isNode(handler) && functions.includes(handler.type) && isEmpty(handler.body)
      ? 'swallows a rejection'
      : null
  })

export function barrels(source: Source): string[] {
  const statements = Array.isArray(source.program.body) ? source.program.body.filter(isNode) : []
  const passesOn = (node: SyntaxNode) => node.type === 'ExportNamedDeclaration' && isNode(node.source)
  const all = statements
    .filter((node) => node.type === 'ExportAllDeclaration')
    .map((node) => at(source, node, 'says export *'))
  return statements.length > 0 && statements.every(passesOn) ? [...all, `${source.path} is a barrel`] : all
}

const isTestFile = (path: string): boolean => /\.(?:test|spec)\.ts$/.test(path)
const doubles = ['vi.mock', 'vi.doMock', 'vi.fn', 'vi.spyOn', 'vi.stubGlobal', 'vi.mocked']

/** Waits for a time instead of an event, stands in for what is tested, or leaves tests out. A peer that is slow may wait. */
export const dishonestTests = (source: Source): string[] =>
  isTestFile(source.path)
    ? collect(source, (node, parents) => {
        const callee = calleeOf(node)
        if (doubles.includes(callee)) return `calls ${callee}`
        if (/^(?:test|it|describe)\.(?:only|skip|todo|fails)$/.test(dotted(node))) return `says ${dotted(node)}`
        if (node.type === 'ImportDeclaration' && isNode(node.source) && node.source.value === 'node:timers/promises')
          return 'can sleep: wait for what is meant (expect.poll, an event)'
        const inPromise = parents.some((each) => each.type === 'NewExpression' && nameOf(each.callee) === 'Promise')
        return callee === 'setTimeout' && inPromise ? 'sleeps: wait for what is meant (expect.poll, an event)' : null
      })
    : []
