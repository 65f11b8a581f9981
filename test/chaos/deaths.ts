/** Deaths by appointment: a process that is led to a named point and dies there, and the one that finds what it left. Owns no process. */
import type { Member } from './fleet.ts'
import type { CrashPoint } from './doomed/doom.ts'
import type { Stage } from './stage.ts'

/** Arms the process, does what leads it to the point, and sees it die there. `of`: by what names this, and not by another's. */
export async function deathAt(
  stage: Stage,
  console_: Member,
  dieAt: CrashPoint,
  work: () => Promise<unknown>,
  of?: string,
): Promise<void> {
  await stage.broken(dieAt, async () => {
    // It dies while the work is under way, which is before anybody waits for its death.
    console_.allow('SIGKILL')
    await console_.tell({ dieAt, of })
    await work()
    await console_.diesAt(dieAt)
  })
}

/** The next process, after those that die at `dying` while they start. */
export async function heir(
  stage: Stage,
  dying: readonly CrashPoint[] = [],
  kind: 'console' | 'worker' = 'console',
): Promise<Member> {
  for (const point of dying) {
    await stage.leasesOver()
    await stage.broken(point, async () => {
      const doomed = await stage[kind]({ storm: ['--die-at', point] })
      await doomed.diesAt(point)
    })
  }
  await stage.leasesOver()
  return stage[kind]({ storm: [] })
}
