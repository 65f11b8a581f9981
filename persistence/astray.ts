/**
 * When a claim on the embedded database has to look beyond what is due: at rows that wait although nothing is to come, because another
 * process held them and is dead, or because the clock was set back. No index knows them, so that looking for them reads every row of the
 * kind that waits. They come with a start or a step of the clock and hardly ever otherwise: the more rows wait, the fewer claims look.
 * Says only whether to look; what is due is said by leases.ts.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'

/** So many are read in a millisecond: where no more wait, every claim looks. */
const rowsALook = 2_000
/** At a claim each quarter of a second five seconds, after which leases of the dead and rows of another time are found at the latest. */
const claimsWithout = 20

const Counted = z.object({ at: z.string(), rows: z.number(), astray: z.boolean() })
const Clock = z.object({ at: z.string() })

interface LastLook {
  /** Few enough wait that each claim looks. */
  readonly isSmall: boolean
  /** Claims until it is counted again. */
  readonly left: number
  /** The database's clock, milliseconds. */
  readonly at: number
}

/** Of one process. */
export class AstrayLooks {
  readonly #byKind = new Map<string, LastLook>()

  /** Whether the next claim of the kind has to look. So that it need not, it is counted at first, and where the clock has gone back. */
  async areDue(tx: Connection, kind: string, isAstray: FragmentSqlToken): Promise<boolean> {
    const last = this.#byKind.get(kind)
    if (!last || last.left === 0) return this.#count(tx, kind, isAstray)
    const left = last.left - 1
    if (last.isSmall) {
      this.#byKind.set(kind, { ...last, left })
      return true
    }
    const at = Date.parse(await tx.oneFirst(sql.type(Clock)`select now() as at`))
    if (at < last.at) return this.#count(tx, kind, isAstray)
    this.#byKind.set(kind, { ...last, left, at })
    return false
  }

  async #count(tx: Connection, kind: string, isAstray: FragmentSqlToken): Promise<boolean> {
    const { at, rows, astray } = await tx.one(sql.type(Counted)`
      select now() as at, count(*)::int as rows, coalesce(bool_or(${isAstray}), false) as astray
      from actor where kind = ${kind} and wake_at is not null`)
    const isSmall = rows <= rowsALook
    const left = isSmall ? claimsWithout : astray ? 0 : Math.min(claimsWithout, Math.ceil(rows / rowsALook))
    this.#byKind.set(kind, { isSmall, left, at: Date.parse(at) })
    return isSmall || astray
  }
}
