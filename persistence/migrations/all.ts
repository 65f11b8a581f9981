/** Every migration, oldest first. The last one's version is the schema version that this release knows. */
import type { Migration } from '../migrate.ts'
import { theHouse } from './0001-the-house.ts'

export const migrations: readonly Migration[] = [theHouse]
