/** Every condition that any machine can draw has words: charts, the inspector and what can happen next say no name of our code. */
import { readdirSync } from 'node:fs'
import { StateMachine, type AnyStateMachine } from 'xstate'
import { expect, it } from 'vitest'
import { spaced, statesOf } from '../../domain/chart.ts'
import { guardWords } from '../../domain/next-words.ts'
import { chartOf } from '../../machines/chart.ts'

const floor = new URL('../../machines/', import.meta.url)

/** Whatever the floor exports, so that a machine that comes cannot be forgotten here. */
async function everyMachine(): Promise<readonly AnyStateMachine[]> {
  const files = readdirSync(floor).filter((name) => name.endsWith('.ts'))
  const modules = await Promise.all(files.map((name) => import(new URL(name, floor).href) as Promise<object>))
  return modules.flatMap((module) => Object.values(module).filter((value) => value instanceof StateMachine))
}

it('every condition of every machine is told in words of ours, and not by its name', async () => {
  const machines = await everyMachine()
  expect(machines.map(({ id }) => id).toSorted()).toEqual(expect.arrayContaining(['command', 'supervisor']))
  const guards = machines.flatMap((machine) =>
    [...statesOf(chartOf(machine).root)].flatMap(({ edges }) => edges.flatMap(({ guard }) => guard ?? [])),
  )
  expect(guards.length).toBeGreaterThan(20)
  expect(guards.filter((guard) => guardWords(guard) === spaced(guard) || /[a-z][A-Z]/.test(guardWords(guard)))).toEqual(
    [],
  )
})
