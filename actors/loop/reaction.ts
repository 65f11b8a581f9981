/** What a reaction to facts is. Which there are is one table (../reactions.ts); each stands beside its noun. */
import type { FactType, ToldFact } from '../../domain/fact.ts'
import type { BatchContext } from './kinds.ts'
import type { Effects } from './step.ts'

/** All facts of one type that a wave brought, together: a reaction to a hundred facts is one statement, too. */
export type Reaction = (batch: BatchContext, told: readonly ToldFact[]) => Promise<Effects>
export type Reactions = readonly (readonly [FactType, readonly Reaction[]])[]
