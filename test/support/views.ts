/** Whole views of tasks, however large: for expectations, not for answers. */
import type { Viewer } from '../../domain/access.ts'
import type { TaskView } from '../../domain/task.ts'
import type { Database } from '../../persistence/database.ts'
import { readViewUpTo } from '../../persistence/task-views.ts'

export async function readView(pool: Database['pool'], viewer: Viewer, localId: string): Promise<TaskView | null> {
  const looked = await readViewUpTo(pool, viewer, { localId, most: Infinity })
  if (looked && 'heavyBytes' in looked) throw new Error('Nothing is larger than that.')
  return looked
}
