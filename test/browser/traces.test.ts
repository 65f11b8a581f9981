/** Which artifacts stand beside a task as its trace, and not among what it made. */
import { expect, it } from 'vitest'
import type { Part, TaskArtifact } from '../../domain/task.ts'
import { isTraceArtifact } from '../../ui/traces.ts'

const part = (kind: Part['kind']): Part => ({ id: 'p', kind, value: 'x', mediaType: 'text/plain' })
const trace: TaskArtifact = {
  artifactId: 'trace.mcp-1',
  name: 'trace.mcp',
  parts: [part('data')],
  complete: true,
  updateCount: 1,
}

it.each<[string, TaskArtifact, boolean]>([
  ['named after its type is one', trace, true],
  ['named otherwise is none', { ...trace, name: 'report' }, false],
  ['in which something is said not to be shown is none', { ...trace, parts: [part('data'), part('unknown')] }, false],
])('an artifact %s', (_name, artifact, is) => {
  expect(isTraceArtifact(artifact)).toBe(is)
})
