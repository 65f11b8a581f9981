/** An agent that repeats its credential does not get it stored: whole bodies, and chunks cut anywhere. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { echoesOf, masked, maskedChunks } from '../../actors/credential-mask.ts'

const secret = 'sk-aab-aab"aac'
const echoes = echoesOf([secret])
const textOf = (body: Uint8Array) => Buffer.from(body).toString()

it('blots out every occurrence, as sent and as JSON writes it, and nothing else', () => {
  const said = JSON.stringify({ told: `x${secret}${secret}`, more: 'sk-aab-aab' }) + secret
  const blotted = textOf(masked(Buffer.from(said), echoes))
  expect(blotted).toHaveLength(said.length)
  expect(blotted).not.toContain(secret)
  expect(blotted).not.toContain(JSON.stringify(secret).slice(1, -1))
  expect(blotted).toContain('"more":"sk-aab-aab"')
})

it('blots out what encoders of JSON make of it that escape more than they must', () => {
  const kept = 'a/b+c<d>&e"f\\g'
  const written = [
    JSON.stringify(kept),
    '"a\\/b+c<d>&e\\"f\\\\g"', // PHP
    '"a/b+c\\u003cd\\u003e\\u0026e\\"f\\\\g"', // Go
    '"a/b\\u002Bc\\u003Cd\\u003E\\u0026e\\u0022f\\\\g"', // .NET
  ]
  for (const text of written) {
    expect(JSON.parse(text)).toBe(kept)
    expect(textOf(masked(Buffer.from(text), echoesOf([kept])))).toBe(`"${'*'.repeat(text.length - 2)}"`)
  }
})

it('gives back the very body where there is nothing to blot out, and leaves the buffer under another alone', () => {
  const plain = Buffer.from('nothing here')
  expect(masked(plain, echoes)).toBe(plain)
  const shared = Buffer.from(`a${secret}b`)
  expect(textOf(masked(shared.subarray(0), echoes))).toBe(`a${'*'.repeat(secret.length)}b`)
  expect(shared.toString()).toBe(`a${secret}b`)
})

it('blots out what is spread over chunks, however they are cut, and loses no byte', async () => {
  const piece = fc.oneof(
    fc.constantFrom(secret, 'sk-aab-', 'sk-', 'aab', 's', '\n\n', secret.slice(0, -1)),
    fc.string(),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), fc.array(fc.nat({ max: 20 })), async (pieces, cuts) => {
      const whole = Buffer.from(pieces.join(''))
      async function* chunks() {
        let at = 0
        for (const cut of cuts) yield await Promise.resolve(whole.subarray(at, (at += cut)))
        yield whole.subarray(at)
      }
      const got: Uint8Array[] = []
      for await (const chunk of maskedChunks(chunks(), echoes)) got.push(chunk)
      expect(Buffer.concat(got).toString()).toBe(textOf(masked(whole, echoes)))
    }),
    { numRuns: 500 },
  )
})

it('holds back only what may be the beginning of a secret', async () => {
  const source = ['data: {"a":1}\n\n', `data: ${secret.slice(0, 5)}`, 'x\n\n']
  async function* chunks() {
    for (const each of source) yield await Promise.resolve(Buffer.from(each))
  }
  const got: string[] = []
  for await (const chunk of maskedChunks(chunks(), echoes)) got.push(textOf(chunk))
  expect(got).toEqual(['data: {"a":1}\n\n', 'data: ', `${secret.slice(0, 5)}x\n\n`])
})
