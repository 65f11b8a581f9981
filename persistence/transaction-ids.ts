/**
 * What transaction ids prove, in one place. They are given out in order: one that is drawn now is greater than that of whoever had one
 * before. A snapshot's lower bound stands at the oldest that lives: of all below it, what the snapshot does not show was rolled back.
 * Its upper bound (`pg_snapshot_xmax`) is not used anywhere: it stands behind the newest that *ended*, not before the next that is
 * given out, and whoever takes it for that overlooks the newest of those who live. Does not say what is proven: actors.ts (an
 * unacknowledged commit), freshness.ts (a missing fact), audit-chain.ts (a missing place).
 */
import { sql } from 'slonik'

/** The id of the asking transaction, drawn now if it has none yet. Where the order is a proof, in a statement after what it is to follow. */
export const drawnId = sql.fragment`pg_current_xact_id()`

/** The oldest id that lives, of all databases of the server. Ids stay below 2^53 for our lifetimes. */
export const oldestAlive = sql.fragment`pg_snapshot_xmin(pg_current_snapshot())::text::int8`

/** Whether that transaction had ended for the snapshot of the asking statement: then its rows are seen by it, or never will be. */
export const hadEnded = (xid: string) => sql.fragment`pg_visible_in_snapshot(${xid}::xid8, pg_current_snapshot())`
