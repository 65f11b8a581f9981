/** An answer that changes nothing is told twice, and then not again, until the task or its answer is another. */
import { expect, it } from 'vitest'
import { FoldedAnswers } from '../../actors/folded-answers.ts'

it('is known to have changed nothing when it was told twice at one version', () => {
  const answers = new FoldedAnswers()
  answers.add('task', 3, 'a')
  // It made the fourth version of it, and is told there, and changes nothing any more.
  for (const isFolded of [false, false, true]) {
    expect(answers.has('task', 4, 'a')).toBe(isFolded)
    answers.add('task', 4, 'a')
  }
  expect([answers.has('task', 4, 'b'), answers.has('task', 5, 'a'), answers.has('other', 4, 'a')]).toEqual([
    false,
    false,
    false,
  ])
})

it('is told again to a database that went back to the version before it', () => {
  const answers = new FoldedAnswers()
  answers.add('task', 4, 'a')
  expect(answers.has('task', 4, 'a')).toBe(false)
})

it('is forgotten with the task’s end', () => {
  const answers = new FoldedAnswers()
  for (let n = 0; n < 2; n++) answers.add('task', 4, 'a')
  answers.forget('task')
  expect(answers.has('task', 4, 'a')).toBe(false)
})
