/**
 * The texts that a signature of a card may have been made over. Owns the canonical forms that real signers produce and the
 * table of 1.0's card that they need. Does not own keys or verdicts (signatures.ts).
 *
 * Signers disagree (A2A issue 2122, a2a-js 663, a2a-python 1174, a2a-tck 227). Trying several forms is safe as long as the
 * reader then uses the text that verified and nothing else: each is a function of the received card, and the pinned key's
 * owner signed exactly that text.
 */
import { canonicalJson, NotCanonical } from './canonical-json.ts'
import { field, isObject } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'

type Shape =
  | { readonly is: 'plain'; readonly empty: unknown }
  | { readonly is: 'list'; readonly of: Shape }
  | { readonly is: 'map'; readonly of: Shape }
  | { readonly is: 'message'; readonly fields: readonly Field[] }

/**
 * What 5.7 of the specification does with an empty value: `kept` is REQUIRED and always there; `explicit` has presence
 * (`optional`, or a message) and is there when it was said; `dropped` says nothing when it is empty.
 */
interface Field {
  readonly name: string
  readonly shape: Shape
  readonly empty: 'kept' | 'explicit' | 'dropped'
}

const text: Shape = { is: 'plain', empty: '' }
const flag: Shape = { is: 'plain', empty: false }
/** A Struct is a JSON object, whatever it holds. */
const struct: Shape = { is: 'plain', empty: undefined }
const listOf = (of: Shape): Shape => ({ is: 'list', of })
const mapOf = (of: Shape): Shape => ({ is: 'map', of })
const message = (...fields: readonly Field[]): Shape => ({ is: 'message', fields })
const needs = (name: string, shape: Shape = text): Field => ({ name, shape, empty: 'kept' })
const says = (name: string, shape: Shape = text): Field => ({ name, shape, empty: 'explicit' })
const may = (name: string, shape: Shape = text): Field => ({ name, shape, empty: 'dropped' })

const scopes = mapOf(text)
const schemeKinds = message(
  says('apiKeySecurityScheme', message(may('description'), needs('location'), needs('name'))),
  says('httpAuthSecurityScheme', message(may('description'), needs('scheme'), may('bearerFormat'))),
  says(
    'oauth2SecurityScheme',
    message(
      may('description'),
      needs(
        'flows',
        message(
          says(
            'authorizationCode',
            message(
              needs('authorizationUrl'),
              needs('tokenUrl'),
              may('refreshUrl'),
              needs('scopes', scopes),
              may('pkceRequired', flag),
            ),
          ),
          says('clientCredentials', message(needs('tokenUrl'), may('refreshUrl'), needs('scopes', scopes))),
          says('implicit', message(may('authorizationUrl'), may('refreshUrl'), may('scopes', scopes))),
          says('password', message(may('tokenUrl'), may('refreshUrl'), may('scopes', scopes))),
          says(
            'deviceCode',
            message(needs('deviceAuthorizationUrl'), needs('tokenUrl'), may('refreshUrl'), needs('scopes', scopes)),
          ),
        ),
      ),
      may('oauth2MetadataUrl'),
    ),
  ),
  says('openIdConnectSecurityScheme', message(may('description'), needs('openIdConnectUrl'))),
  says('mtlsSecurityScheme', message(may('description'))),
)
const requirements = listOf(message(may('schemes', mapOf(message(may('list', listOf(text)))))))

/** `AgentCard` of 1.0 without `signatures` [a2a.proto]. */
const card = message(
  needs('name'),
  needs('description'),
  needs(
    'supportedInterfaces',
    listOf(message(needs('url'), needs('protocolBinding'), may('tenant'), needs('protocolVersion'))),
  ),
  says('provider', message(needs('url'), needs('organization'))),
  needs('version'),
  says('documentationUrl'),
  needs(
    'capabilities',
    message(
      says('streaming', flag),
      says('pushNotifications', flag),
      may('extensions', listOf(message(may('uri'), may('description'), may('required', flag), says('params', struct)))),
      says('extendedAgentCard', flag),
      says('skillQuery', flag),
    ),
  ),
  may('securitySchemes', mapOf(schemeKinds)),
  may('securityRequirements', requirements),
  needs('defaultInputModes', listOf(text)),
  needs('defaultOutputModes', listOf(text)),
  needs(
    'skills',
    listOf(
      message(
        needs('id'),
        needs('name'),
        needs('description'),
        needs('tags', listOf(text)),
        may('examples', listOf(text)),
        may('inputModes', listOf(text)),
        may('outputModes', listOf(text)),
        may('securityRequirements', requirements),
      ),
    ),
  ),
  says('iconUrl'),
)

const isEmpty = (value: unknown): boolean =>
  value === '' ||
  value === false ||
  value === 0 ||
  (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0)

/** What an absent REQUIRED field is. */
function emptyOf(shape: Shape): unknown {
  if (shape.is === 'plain') return shape.empty
  return shape.is === 'list' ? [] : shape.is === 'map' ? {} : reduce({}, shape)
}

/** The fields that the schema knows, by the rule of 5.7. A value of another type stays: then nobody signed this form. */
function reduce(value: unknown, shape: Shape): unknown {
  if (shape.is === 'list') return Array.isArray(value) ? value.map((item) => reduce(item, shape.of)) : value
  if (shape.is === 'plain' || !isObject(value)) return value
  if (shape.is === 'message') return reduceMessage(value, shape.fields)
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, reduce(item, shape.of)]))
}

function reduceMessage(value: JsonObject, fields: readonly Field[]): JsonObject {
  const kept = fields.flatMap(({ name, shape: inner, empty }): [string, unknown][] => {
    const said = field(value, name)
    if (said === undefined) return empty === 'kept' ? [[name, emptyOf(inner)]] : []
    const reduced = reduce(said, inner)
    return empty === 'dropped' && isEmpty(reduced) ? [] : [[name, reduced]]
  })
  return Object.fromEntries(kept)
}

/** As the SDKs for JavaScript and Python do after ProtoJSON: every empty text, list and object goes, at every level. */
function stripped(value: unknown): unknown {
  if (value === '' || value === null) return undefined
  if (Array.isArray(value)) {
    const items = value.map(stripped).filter((item) => item !== undefined)
    return items.length > 0 ? items : undefined
  }
  if (!isObject(value)) return value
  const entries = Object.entries(value).flatMap(([name, item]): [string, unknown][] => {
    const rest = stripped(item)
    return rest === undefined ? [] : [[name, rest]]
  })
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
}

/** `json.dumps` escapes everything that is not printable ASCII, in lower case. */
const ascii = (json: string): string =>
  json.replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

function without(json: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(json).filter(([each]) => each !== name))
}

/**
 * The forms of a received card, what covers most first, each text once:
 *
 * 1. RFC 8785 over the whole JSON but `signatures`: what a card of 0.3 is signed over, and what nothing escapes from.
 * 2. The rule of 1.0 [8.4.1 with 5.7].
 * 3. The SDKs' way: ProtoJSON without anything empty; JavaScript, then JavaScript signing its own objects, whose security
 *    schemes it loses, then Python, whose JWT library escapes.
 *
 * Forms after the first leave out what 1.0 does not know. In a card without 1.0's interfaces that is the endpoint itself,
 * so such a card has the first form only. To be called with a card that is not nested without bounds.
 */
export function* signedForms(received: JsonObject): Generator<string, void> {
  const unsigned = without(received, 'signatures')
  const seen = new Set<string>()
  for (const form of formsOf(unsigned)) {
    const canonical = canonicalOr(form)
    if (canonical === null) continue
    const texts = form.escapes ? [canonical, ascii(canonical)] : [canonical]
    for (const each of texts) {
      if (seen.has(each)) continue
      seen.add(each)
      yield each
    }
  }
}

interface Form {
  readonly value: unknown
  /** Signers of this form may have escaped it. */
  readonly escapes: boolean
}

function* formsOf(unsigned: JsonObject): Generator<Form, void> {
  yield { value: unsigned, escapes: false }
  const interfaces = field(unsigned, 'supportedInterfaces')
  if (!Array.isArray(interfaces) || interfaces.length === 0) return
  const known = reduce(unsigned, card)
  if (!isObject(known)) return
  yield { value: known, escapes: false }
  yield { value: stripped(known), escapes: true }
  yield { value: stripped(without(known, 'securitySchemes')), escapes: false }
}

/** Null where a text has no canonical form: nobody can have signed it. */
function canonicalOr({ value }: Form): string | null {
  try {
    return canonicalJson(value)
  } catch (error) {
    if (error instanceof NotCanonical) return null
    throw error
  }
}
