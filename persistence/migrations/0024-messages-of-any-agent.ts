/**
 * Sends by the id of their message, whichever agent they went to: one agent may be registered twice, and evidence of a send by one name is
 * worthless where another by the other name bears the same id. The same index as before (migration 20) with the id first: by it one
 * look-up finds all of them, where looking by each agent read every send that was ever given an id. Code from before, which goes on beside
 * it during a rolling restart, names all three and finds them by this one, too. Built under its table's lock: commands wait meanwhile.
 */
import type { Migration } from '../migrate.ts'

const by = (columns: string): string => `
drop index command_of_message;
create index command_of_message on command (${columns}) where action = 'send' and message_id <> id::text;`

export const messagesOfAnyAgent: Migration = {
  version: 24,
  name: 'messages-of-any-agent',
  up: by('message_id, tenant, agent_id'),
  down: by('agent_id, tenant, message_id'),
}
