/**
 * The checks that a card of any version must pass, and the small vocabulary they are written in. Owns what is common to 1.0 and 0.3;
 * interfaces and security differ and have their own tables.
 */
import { field, isObject } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { isAsymmetric, signatureHeader } from './signatures.ts'

export type Severity = 'error' | 'warning' | 'info'

/** One place that was looked at. */
export interface Look {
  /** JSON pointer. */
  readonly path: string
  /** A sentence about what is wrong here, or null. */
  readonly fault: string | null
}

export interface Check {
  readonly id: string
  readonly severity: Severity
  /** Section of the 1.0 specification. */
  readonly spec?: string
  /** Section of the 0.3 specification, where the check applies to both. */
  readonly specV03?: string
  readonly look: (card: JsonObject) => Iterable<Look>
}

/** Entries of a list that are looked at; a longer list is judged by its beginning. */
const entryLimit = 200

/** A JSON pointer to a field. */
export const pointer = (...steps: readonly (string | number)[]): string =>
  steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

export const look = (path: string, isRight: boolean, sentence: string): Look => ({
  path,
  fault: isRight ? null : sentence,
})

export const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

export const isAbsoluteUrl = (value: unknown): value is string =>
  typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)

/** The objects of a list with their places; what is no object is the list check's to report. */
export function objectsOf(json: JsonObject, name: string, base = ''): { item: JsonObject; path: string }[] {
  const value = field(json, name)
  if (!Array.isArray(value)) return []
  return value
    .slice(0, entryLimit)
    .flatMap((item: unknown, index) => (isObject(item) ? [{ item, path: `${base}${pointer(name, index)}` }] : []))
}

export const objectAt = (json: JsonObject, name: string): JsonObject => {
  const value = field(json, name)
  return isObject(value) ? value : {}
}

/** A required text, at the top of the card. */
const requiredText = (name: string): Check['look'] =>
  function* (card) {
    yield look(pointer(name), isText(field(card, name)), `\`${name}\` is required and must be a non-empty string.`)
  }

/** An optional http(s) URL, at the top of the card. */
const optionalUrl = (name: string): Check['look'] =>
  function* (card) {
    const value = field(card, name)
    if (value !== undefined && value !== '')
      yield look(pointer(name), isAbsoluteUrl(value), `\`${name}\` must be an absolute http(s) URL.`)
  }

const modeNames = ['defaultInputModes', 'defaultOutputModes'] as const
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+*-]+(?:\s*;.*)?$/
const capabilityFlags = ['streaming', 'pushNotifications', 'extendedAgentCard', 'stateTransitionHistory'] as const

const identity: readonly Check[] = [
  { id: 'card.name', severity: 'error', spec: '4.4.1', specV03: '5.5', look: requiredText('name') },
  { id: 'card.description', severity: 'error', spec: '4.4.1', specV03: '5.5', look: requiredText('description') },
  { id: 'card.version', severity: 'error', spec: '4.4.1', specV03: '5.5', look: requiredText('version') },
  {
    id: 'card.documentationUrl',
    severity: 'warning',
    spec: '4.4.1',
    specV03: '5.5',
    look: optionalUrl('documentationUrl'),
  },
  { id: 'card.iconUrl', severity: 'warning', spec: '4.4.1', specV03: '5.5', look: optionalUrl('iconUrl') },
  {
    id: 'card.emptyDefaults',
    severity: 'info',
    spec: '5.7',
    *look(card) {
      for (const name of ['documentationUrl', 'iconUrl'])
        if (card[name] === '')
          yield look(pointer(name), false, `\`${name}\` is optional: leave it out instead of sending "".`)
    },
  },
  {
    id: 'card.fieldNames',
    severity: 'warning',
    spec: '5.5',
    *look(card) {
      for (const name of Object.keys(card).slice(0, entryLimit))
        if (/^[a-z]+(_[a-z]+)+$/.test(name))
          yield look(pointer(name), false, `Field names are camelCase: \`${name}\` is not.`)
    },
  },
  {
    id: 'provider.complete',
    severity: 'error',
    spec: '4.4.2',
    specV03: '5.5.1',
    *look(card) {
      const provider = field(card, 'provider')
      if (provider === undefined) return
      for (const name of ['organization', 'url']) {
        const given = isObject(provider) && isText(field(provider, name))
        yield look(pointer('provider', name), given, `A provider needs \`${name}\`.`)
      }
    },
  },
]

const capabilities: readonly Check[] = [
  {
    id: 'capabilities.object',
    severity: 'error',
    spec: '4.4.1',
    specV03: '5.5',
    *look(card) {
      const given = isObject(field(card, 'capabilities'))
      yield look('/capabilities', given, '`capabilities` is required and must be an object, even when empty.')
    },
  },
  {
    id: 'capabilities.flags',
    severity: 'error',
    spec: '4.4.3',
    specV03: '5.5.2',
    *look(card) {
      const said = objectAt(card, 'capabilities')
      for (const name of capabilityFlags) {
        const value = field(said, name)
        if (value !== undefined)
          yield look(pointer('capabilities', name), typeof value === 'boolean', `\`${name}\` must be true or false.`)
      }
    },
  },
  {
    id: 'extension.uri',
    severity: 'error',
    spec: '4.4.4',
    specV03: '5.5.2.1',
    *look(card) {
      for (const { item, path } of objectsOf(objectAt(card, 'capabilities'), 'extensions', '/capabilities'))
        yield look(`${path}/uri`, isText(field(item, 'uri')), 'An extension needs a `uri`.')
    },
  },
  {
    id: 'extension.uriForm',
    severity: 'warning',
    spec: '4.6.1',
    specV03: '5.5.2.1',
    *look(card) {
      for (const { item, path } of objectsOf(objectAt(card, 'capabilities'), 'extensions', '/capabilities')) {
        const uri = field(item, 'uri')
        if (isText(uri))
          yield look(`${path}/uri`, URL.canParse(uri), 'The `uri` of an extension must be an absolute URI.')
      }
    },
  },
  {
    id: 'extension.unique',
    severity: 'warning',
    spec: '4.6.1',
    specV03: '5.5.2.1',
    *look(card) {
      const seen = new Set<unknown>()
      for (const { item, path } of objectsOf(objectAt(card, 'capabilities'), 'extensions', '/capabilities')) {
        const uri = field(item, 'uri')
        yield look(`${path}/uri`, !seen.has(uri), 'The same extension is declared twice.')
        seen.add(uri)
      }
    },
  },
]

const modes: readonly Check[] = [
  {
    id: 'modes.list',
    severity: 'error',
    spec: '4.4.1',
    specV03: '5.5',
    *look(card) {
      for (const name of modeNames)
        yield look(
          pointer(name),
          Array.isArray(field(card, name)),
          `\`${name}\` is required and must be an array of media types.`,
        )
    },
  },
  {
    id: 'modes.some',
    severity: 'warning',
    spec: '4.4.1',
    specV03: '5.5',
    *look(card) {
      for (const name of modeNames) {
        const value = field(card, name)
        if (Array.isArray(value))
          yield look(pointer(name), value.length > 0, `\`${name}\` is empty: clients cannot know what fits.`)
      }
    },
  },
  {
    id: 'modes.mediaType',
    severity: 'warning',
    spec: '4.4.1',
    specV03: '5.5',
    *look(card) {
      for (const name of modeNames) {
        const value = field(card, name)
        if (!Array.isArray(value)) continue
        for (const [index, mode] of value.slice(0, entryLimit).entries()) {
          const fits = typeof mode === 'string' && mode.length <= 255 && mediaType.test(mode)
          yield look(pointer(name, index), fits, 'A mode is a media type such as `text/plain`.')
        }
      }
    },
  },
]

const skillTexts = (name: string): Check => ({
  id: `skill.${name}`,
  severity: 'error',
  spec: '4.4.5',
  specV03: '5.5.4',
  *look(card) {
    for (const { item, path } of objectsOf(card, 'skills'))
      yield look(`${path}/${name}`, isText(field(item, name)), `A skill needs a \`${name}\`.`)
  },
})

const skills: readonly Check[] = [
  {
    id: 'skills.list',
    severity: 'error',
    spec: '4.4.1',
    specV03: '5.5',
    *look(card) {
      yield look('/skills', Array.isArray(field(card, 'skills')), '`skills` is required and must be an array.')
    },
  },
  {
    id: 'skills.some',
    severity: 'warning',
    spec: '4.4.1',
    specV03: '5.5',
    *look(card) {
      const value = field(card, 'skills')
      if (Array.isArray(value))
        yield look('/skills', value.length > 0, 'The card declares no skill: nobody can tell what the agent does.')
    },
  },
  {
    id: 'skills.objects',
    severity: 'error',
    spec: '4.4.5',
    specV03: '5.5.4',
    *look(card) {
      const value = field(card, 'skills')
      if (!Array.isArray(value)) return
      for (const [index, skill] of value.slice(0, entryLimit).entries())
        if (!isObject(skill)) yield look(pointer('skills', index), false, 'A skill must be an object.')
    },
  },
  skillTexts('id'),
  skillTexts('name'),
  skillTexts('description'),
  {
    id: 'skill.idUnique',
    severity: 'error',
    spec: '4.4.5',
    specV03: '5.5.4',
    *look(card) {
      const seen = new Set<unknown>()
      for (const { item, path } of objectsOf(card, 'skills')) {
        const id = field(item, 'id')
        if (isText(id)) yield look(`${path}/id`, !seen.has(id), 'Two skills have the same `id`.')
        seen.add(id)
      }
    },
  },
  {
    id: 'skill.tags',
    severity: 'error',
    spec: '4.4.5',
    specV03: '5.5.4',
    *look(card) {
      for (const { item, path } of objectsOf(card, 'skills')) {
        const tags = field(item, 'tags')
        const given = Array.isArray(tags) && tags.every((tag) => typeof tag === 'string')
        yield look(`${path}/tags`, given, 'A skill needs `tags`, an array of strings.')
      }
    },
  },
  {
    id: 'skill.examples',
    severity: 'info',
    spec: '4.4.5',
    specV03: '5.5.4',
    *look(card) {
      for (const { item, path } of objectsOf(card, 'skills')) {
        const examples = field(item, 'examples')
        const given = Array.isArray(examples) && examples.length > 0
        yield look(`${path}/examples`, given, 'Examples help people and agents to ask well.')
      }
    },
  },
]

const signatures: readonly Check[] = [
  {
    id: 'signature.fields',
    severity: 'error',
    spec: '4.4.7',
    specV03: '5.5.6',
    *look(card) {
      for (const { item, path } of objectsOf(card, 'signatures'))
        for (const name of ['protected', 'signature'])
          yield look(`${path}/${name}`, isText(item[name]), `A signature needs \`${name}\`, base64url text.`)
    },
  },
  {
    id: 'signature.header',
    severity: 'error',
    spec: '8.4.2',
    specV03: '5.5.6',
    *look(card) {
      for (const { item, path } of objectsOf(card, 'signatures').filter(({ item }) => isText(item['protected']))) {
        const header = signatureHeader(item)
        const names = header !== null && header.kid !== null && header.alg !== null
        yield look(
          `${path}/protected`,
          names,
          'The protected header must be base64url JSON that names `alg` and `kid`.',
        )
      }
    },
  },
  {
    id: 'signature.algorithm',
    severity: 'error',
    spec: '8.4.2',
    specV03: '5.5.6',
    *look(card) {
      for (const { item, path } of objectsOf(card, 'signatures')) {
        const alg = signatureHeader(item)?.alg ?? null
        if (alg === null) continue
        const sentence = 'A card is signed with an asymmetric algorithm: with others whoever verifies can sign.'
        yield look(`${path}/protected`, isAsymmetric(alg), sentence)
      }
    },
  },
]

export const cardChecks: readonly Check[] = [...identity, ...capabilities, ...modes, ...skills, ...signatures]
