/**
 * What settling a send and reopening it have alike: the field for a note, and why it did not work. Draws; what is written is kept by
 * whoever unfolds it (settle-send.ts, reopen-send.ts).
 */
import { html, nothing, type TemplateResult } from 'lit'
import { settleNoteLimit, whyNotSettled } from '../../domain/settlement.ts'
import type { ApiFault } from '../api.ts'
import { icon } from './icon.ts'

export const noteField = (note: string, written: (note: string) => void): TemplateResult =>
  html`<div class="field">
    <label for="note">Note, if there is more to say</label>
    <textarea
      id="note"
      rows="2"
      maxlength=${settleNoteLimit}
      dir="auto"
      .value=${note}
      @input=${({ currentTarget }: Event & { currentTarget: HTMLTextAreaElement }) => written(currentTarget.value)}
    ></textarea>
  </div>`

/** `what`: what was not done, before its reason. */
export const settleFault = (what: string, fault: ApiFault | undefined): TemplateResult | typeof nothing =>
  fault
    ? html`<p class="fault" role="alert">${icon('triangle-alert', 14)}<span>${what}: ${whyNotSettled(fault)}</span></p>`
    : nothing
