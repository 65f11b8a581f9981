/** A script of the product, run to its end as an operator runs it. Owns no expectation; which file is started is child.ts. */
import { execFile } from 'node:child_process'
import { bareEnvironment, childArgs } from './child.ts'

export interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

const boundMs = 120_000

/** `variables`: all of its environment that is not any script's. A script that did not end by itself, or in time, has no number for its code. */
export function runScript(
  file: string,
  variables: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Outcome> {
  const env = { ...bareEnvironment(), ...variables }
  return new Promise((resolve) => {
    execFile(process.execPath, childArgs(file, ...args), { env, timeout: boundMs }, (error, out, err) =>
      resolve({ code: error ? Number(error.code ?? Number.NaN) : 0, out, err }),
    )
  })
}
