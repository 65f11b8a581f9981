/**
 * Requests from an OpenAPI document: what its schemas allow, and the same with one thing wrong; and answers held against it.
 * Owns no server and no opinion beyond the document; what is good is the spec's to say (test/specs/openapi-fuzz.spec.ts).
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { z } from 'zod'

export type Json = { readonly [key: string]: unknown }

const Parameter = z.object({
  name: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean().default(false),
  schema: z.record(z.string(), z.unknown()),
})
const Content = z.record(z.string(), z.object({ schema: z.record(z.string(), z.unknown()) }))
const Described = z.object({
  summary: z.string(),
  'x-permission': z.enum(['public', 'agent', 'read', 'operate', 'administer']),
  parameters: z.array(Parameter).default([]),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), z.object({ description: z.string(), content: Content.default({}) })),
})
const OpenApi = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), Described)),
  components: z.looseObject({ schemas: z.record(z.string(), z.record(z.string(), z.unknown())) }),
})

export interface Operation {
  readonly method: string
  /** With `{names}` of its parameters. */
  readonly path: string
  readonly permission: z.infer<typeof Described>['x-permission']
  readonly parameters: readonly z.infer<typeof Parameter>[]
  readonly body: Json | null
  readonly responses: z.infer<typeof Described>['responses']
}

export interface Request {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** Undefined: none. */
  readonly body: unknown
}

export interface There {
  /** Ids under the names that paths and queries use. */
  readonly known: readonly Readonly<Record<string, string>>[]
  /** By path: a body that succeeds, to which others are laid. */
  readonly bodies: Readonly<Record<string, Json>>
}

/** Strings that have broken servers: control characters, quotes of three languages, names of other places, other scripts. */
const nasty = [
  '\0',
  "' or 1=1 --",
  '../../etc/passwd',
  '%00',
  '<script>alert(1)</script>',
  '{{7*7}}',
  '__proto__',
  '\u202e𝔘𝔫𝔦\u0000',
  '0',
  ' ',
]
/** Longer ones say no more. */
const lengthLimit = 40
const itemsLimit = 3

export class Document {
  readonly operations: readonly Operation[]
  readonly #schemas: Readonly<Record<string, Json>>
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false })
  readonly #checks = new Map<string, ValidateFunction>()

  /** Throws where it is no OpenAPI 3.1 document as this console writes it. */
  constructor(document: unknown) {
    const { openapi, paths, components } = OpenApi.parse(document)
    if (!openapi.startsWith('3.1.')) throw new Error(`OpenAPI ${openapi} was not expected.`)
    this.#schemas = components.schemas
    this.operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, described]) => ({
        method: method.toUpperCase(),
        path,
        permission: described['x-permission'],
        parameters: described.parameters,
        body: described.requestBody?.content['application/json']?.schema ?? null,
        responses: described.responses,
      })),
    )
  }

  /** Null where the value is what the schema says, else what is wrong with it. */
  faultOf(schema: Json, value: unknown): string | null {
    const key = JSON.stringify(schema)
    const check = this.#checks.get(key) ?? this.#ajv.compile({ ...schema, components: { schemas: this.#schemas } })
    this.#checks.set(key, check)
    return check(value) ? null : this.#ajv.errorsText(check.errors)
  }

  /** Values that the schema allows. */
  valid(schema: Json): fc.Arbitrary<unknown> {
    const { $ref, anyOf, oneOf, type } = schema
    if (typeof $ref === 'string') return this.valid(this.#schemas[$ref.split('/').at(-1) ?? ''] ?? {})
    const either = (anyOf ?? oneOf) as readonly Json[] | undefined
    if (either) return fc.oneof(...either.map((one) => this.valid(one)))
    if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
    if (Array.isArray(type)) return fc.oneof(...type.map((one) => this.valid({ ...schema, type: one as unknown })))
    if (type === 'object') return this.#object(schema)
    if (type === 'array') {
      const most = Math.min(Number(schema['maxItems'] ?? itemsLimit), itemsLimit)
      const items = (schema['items'] ?? {}) as Json
      return fc.array(this.valid(items), { minLength: Number(schema['minItems'] ?? 0), maxLength: most })
    }
    return scalar(schema)
  }

  /** A valid value with one thing wrong: a key too many or too few, a value of another type. */
  invalid(schema: Json): fc.Arbitrary<unknown> {
    const wrong = fc.constantFrom<unknown>(null, 7, 'word', [], {}, true, ['word'], '')
    const spoilt = fc.tuple(this.valid(schema), wrong, fc.nat()).map(([value, other, place]) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return other
      const keys = [...Object.keys(value), 'unheardOf']
      const key = keys[place % keys.length] ?? 'unheardOf'
      const { [key]: _, ...rest } = value as Json
      return place % 3 === 0 ? rest : { ...rest, [key]: other }
    })
    return spoilt.filter((value) => value !== undefined && this.faultOf(schema, value) !== null)
  }

  #object(schema: Json): fc.Arbitrary<unknown> {
    const properties = Object.entries((schema['properties'] ?? {}) as Readonly<Record<string, Json>>)
    const required = (schema['required'] ?? []) as string[]
    const known = sparse(new Map(properties.map(([key, value]) => [key, this.valid(value)])), required)
    const more = schema['additionalProperties']
    if (typeof more !== 'object' || more === null || properties.length > 0) return known
    return fc.dictionary(fc.string({ maxLength: 8 }), this.valid(more as Json), { maxKeys: itemsLimit })
  }

  /** Requests to an operation, among things that are there. */
  requests(operation: Operation, there: There): fc.Arbitrary<Request> {
    const { body } = operation
    const bodies = body === null ? fc.constant(undefined) : this.valid(body)
    const start = there.bodies[operation.path]
    const grown = bodies.map((more) => (isObject(more) ? { ...more, ...start } : start))
    return fc.record({
      path: pathTo(operation, there),
      query: this.#query(operation, there),
      headers: this.#headers(operation),
      body: start === undefined || body === null ? bodies : fc.oneof(bodies, fc.constant(start), grown),
    })
  }

  /** The same with one thing wrong that the document forbids; null where it forbids nothing, or there is nothing to ask for. */
  wrongRequests(operation: Operation, there: There): fc.Arbitrary<Request> | null {
    const ways: ((request: Request) => fc.Arbitrary<Request>)[] = []
    const { body } = operation
    // A body that would succeed, so that only the header is to blame.
    const start = there.bodies[operation.path] ? { body: there.bodies[operation.path] } : {}
    if (body) ways.push((request) => this.invalid(body).map((spoilt) => ({ ...request, body: spoilt })))
    for (const { name, in: place, required, schema } of operation.parameters.filter((one) => one.in !== 'path')) {
      const part = place === 'query' ? 'query' : 'headers'
      const bad = [...nasty, 'x'.repeat(600)].filter((text) => this.faultOf(schema, text) !== null)
      // A header carries no control characters, and its blanks at the ends are nobody's.
      const sent = part === 'query' ? bad : bad.filter((text) => /^[!-~]+$/.test(text))
      if (sent.length > 0)
        ways.push((request) =>
          fc
            .constantFrom(...sent)
            .map((text) => ({ ...request, ...start, [part]: { ...request[part], [name]: text } })),
        )
      if (required)
        ways.push((request) => {
          const { [name]: _, ...rest } = request[part]
          return fc.constant({ ...request, ...start, [part]: rest })
        })
    }
    if (ways.length === 0) return null
    const path = pathsThere(operation, there)
    if (path.length === 0) return null
    return fc
      .tuple(this.requests(operation, there), fc.constantFrom(...path), fc.constantFrom(...ways))
      .chain(([request, known, spoil]) => spoil({ ...request, path: known }))
  }

  #query(operation: Operation, { known }: There): fc.Arbitrary<Record<string, string>> {
    const wanted = operation.parameters.filter((parameter) => parameter.in === 'query')
    const values = wanted.map(({ name, schema }): [string, fc.Arbitrary<string>] => {
      const ids = known.flatMap((one) => one[name] ?? [])
      const any = this.valid(schema).map(String)
      return [name, ids.length === 0 ? any : fc.oneof(any, fc.constantFrom(...ids))]
    })
    return sparse(new Map(values), requiredOf(wanted))
  }

  #headers({ parameters }: Operation): fc.Arbitrary<Record<string, string>> {
    const wanted = parameters.filter((parameter) => parameter.in === 'header')
    // A key is anything; what fetch can write into a header is less.
    return sparse(new Map(wanted.map(({ name }) => [name, fc.uuid()])), requiredOf(wanted))
  }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const requiredOf = (parameters: Operation['parameters']): string[] =>
  parameters.filter(({ required }) => required).map(({ name }) => name)

/** All that is required and two more at most: with everything at once, one thing of many is always refused. */
function sparse<Value>(
  values: ReadonlyMap<string, fc.Arbitrary<Value>>,
  required: readonly string[],
): fc.Arbitrary<Record<string, Value>> {
  const optional = [...values.keys()].filter((key) => !required.includes(key))
  return fc
    .subarray(optional, { maxLength: Math.min(2, optional.length) })
    .chain((keys) =>
      fc.record(Object.fromEntries([...values].filter(([key]) => required.includes(key) || keys.includes(key)))),
    )
}

function scalar(schema: Json): fc.Arbitrary<unknown> {
  const { type, minimum, maximum, pattern, format } = schema
  switch (type) {
    case 'string': {
      // By its pattern, fast-check takes seconds to find one.
      if (format === 'uuid' || format === 'guid') return fc.uuid()
      if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern))
      const least = Number(schema['minLength'] ?? 0)
      const most = Number(schema['maxLength'] ?? lengthLimit)
      const fitting = nasty.filter(({ length }) => length >= least && length <= most)
      const words = fc.string({ minLength: least, maxLength: Math.min(most, lengthLimit), unit: 'grapheme' })
      return fitting.length === 0 ? words : fc.oneof({ weight: 3, arbitrary: words }, fc.constantFrom(...fitting))
    }
    case 'integer':
      return fc.integer({ min: Number(minimum ?? -1000), max: Number(maximum ?? 1000) })
    case 'number':
      return fc.double({ min: Number(minimum ?? -1e6), max: Number(maximum ?? 1e6), noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

const namesIn = (operation: Operation): string[] =>
  operation.parameters.filter((one) => one.in === 'path').map(({ name }) => name)

const filled = (operation: Operation, values: Readonly<Record<string, string>>): string =>
  namesIn(operation).reduce(
    (path, name) => path.replace(`{${name}}`, encodeURIComponent(values[name] ?? '')),
    operation.path,
  )

const pathsThere = (operation: Operation, { known }: There): string[] =>
  known
    .filter((one) => namesIn(operation).every((name) => one[name] !== undefined))
    .map((one) => filled(operation, one))

/** Mostly to what is there, for a path to nothing shows little. */
function pathTo(operation: Operation, there: There): fc.Arbitrary<string> {
  const names = namesIn(operation)
  if (names.length === 0) return fc.constant(operation.path)
  const guess = fc.oneof(fc.uuid(), fc.constantFrom(...nasty))
  const guessed = fc
    .tuple(...names.map(() => guess))
    .map((values) => filled(operation, Object.fromEntries(values.map((value, i) => [names[i] ?? '', value]))))
  const paths = pathsThere(operation, there)
  return paths.length === 0 ? guessed : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...paths) }, guessed)
}

/**
 * What an answer tells of things by which others can be asked for: every object with ids, under the names that paths use. An `id`
 * belongs to whatever the object is called by (`command`, `agents`).
 */
export function idsIn(value: unknown, name = ''): Readonly<Record<string, string>>[] {
  if (Array.isArray(value)) return value.flatMap((item) => idsIn(item, name.replace(/s$/, '')))
  if (typeof value !== 'object' || value === null) return []
  const texts = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  const own: Record<string, string> = Object.fromEntries(texts)
  if (own['id'] !== undefined && name !== '') own[`${name}Id`] = own['id']
  const local = own['localId'] === undefined ? [] : [{ ...own, taskId: own['localId'] }]
  return [own, ...local, ...Object.entries(value).flatMap(([key, inner]) => idsIn(inner, key))]
}
