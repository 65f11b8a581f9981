/**
 * Sends by the id of their message: evidence of one proves nothing where another bears the same id. A caller may choose it, and only such
 * are kept here: where none was given the command's own id is the message's, and is found by the table's key, so that its acceptance writes
 * this index not at all. Nothing that the index knows changes, and so ends write it neither (migration 11).
 *
 * Code from before, which goes on beside it during a rolling restart, makes up an id of its own for each message: those are kept here, and
 * so is all that is stored already. The index is built under its table's lock: commands wait meanwhile.
 */
import type { Migration } from '../migrate.ts'

export const messagesById: Migration = {
  version: 20,
  name: 'messages-by-id',
  up: `
create index command_of_message on command (agent_id, tenant, message_id) where action = 'send' and message_id <> id::text;`,
  down: `drop index command_of_message;`,
}
