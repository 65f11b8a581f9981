/** Every migration, oldest first. The last one's version is the schema version that this release knows. */
import type { Migration } from '../migrate.ts'
import { theHouse } from './0001-the-house.ts'
import { reconciliation } from './0002-reconciliation.ts'
import { push } from './0003-push.ts'
import { retention } from './0004-retention.ts'
import { actorViews } from './0005-actor-views.ts'
import { hotPath } from './0006-hot-path.ts'
import { access } from './0007-access.ts'
import { signIn } from './0008-sign-in.ts'
import { credentials } from './0009-credentials.ts'
import { auditChain } from './0010-audit-chain.ts'
import { lighterUpdates } from './0011-lighter-updates.ts'
import { processes } from './0012-processes.ts'
import { pushTakesBack } from './0013-push-takes-back.ts'
import { settlements } from './0014-settlements.ts'
import { reopenings } from './0015-reopenings.ts'
import { largeTexts } from './0016-large-texts.ts'
import { valuesInEvents } from './0017-values-in-events.ts'
import { presentLooks } from './0018-present-looks.ts'
import { lostAtAVersion } from './0019-lost-at-a-version.ts'
import { messagesById } from './0020-messages-by-id.ts'
import { givenUpTasks } from './0021-given-up-tasks.ts'
import { forgottenTasks } from './0022-forgotten-tasks.ts'
import { answersBehind } from './0023-answers-behind.ts'
import { messagesOfAnyAgent } from './0024-messages-of-any-agent.ts'

export const migrations: readonly Migration[] = [
  theHouse,
  reconciliation,
  push,
  retention,
  actorViews,
  hotPath,
  access,
  signIn,
  credentials,
  auditChain,
  lighterUpdates,
  processes,
  pushTakesBack,
  settlements,
  reopenings,
  largeTexts,
  valuesInEvents,
  presentLooks,
  lostAtAVersion,
  messagesById,
  givenUpTasks,
  forgottenTasks,
  answersBehind,
  messagesOfAnyAgent,
]
