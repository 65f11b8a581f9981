/** The text that a link's hash is made of is canonical JSON, whatever a row holds. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../a2a/canonical-json.ts'
import { auditGroups, kindsOf } from '../../domain/audit.ts'
import { linkText } from '../../domain/audit-chain.ts'

const text = fc.string({ unit: 'grapheme' })
const row = fc.record({
  place: fc.maxSafeNat(),
  id: fc.uuid(),
  organizationId: fc.uuid(),
  at: text,
  kind: text,
  actorType: fc.constantFrom('user' as const, 'system' as const, 'agent' as const),
  actorPersonId: fc.option(fc.uuid()),
  taskId: fc.option(fc.uuid()),
  subjectId: fc.option(text),
  data: fc.dictionary(
    text,
    fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
  ),
})

test('it is what the general way writes', () => {
  fc.assert(
    fc.property(text, fc.maxSafeNat(), row, (previousHash, number, each) => {
      expect(linkText(previousHash, number, each)).toBe(canonicalJson({ previousHash, number, row: each }))
    }),
  )
})

test('every kind is in one group', () => {
  const kinds = auditGroups.flatMap((group) => kindsOf(group))
  expect(new Set(kinds).size).toBe(kinds.length)
  // The closed list of the decided shapes has 33 kinds; settling a send and taking that back are ours, beyond it.
  const beyond = kinds.filter((kind) => kind === 'command.settled' || kind === 'command.reopened')
  expect(beyond).toHaveLength(2)
  expect(kinds).toHaveLength(33 + beyond.length)
})
