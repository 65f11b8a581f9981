/**
 * What settling a send and reopening it have alike: the field for a note, why it did not work, and that another was quicker. Draws; what is written is kept by
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

/** That somebody else was quicker, said where a person writes, who keeps their words and may read on. `said`: who, and what. */
export const meanwhile = (said: string, note: string): TemplateResult =>
  html`<p class="meanwhile" role="alert">
    ${icon('triangle-alert', 14)}<span
      ><bdi>${said}.</bdi
      >${note.trim() === '' ? nothing : ' Your note was not kept, and stays here until you close this.'}</span
    >
  </p>`

/** `what`: what was not done, before its reason. */
export const settleFault = (what: string, fault: ApiFault | undefined): TemplateResult | typeof nothing =>
  fault
    ? html`<p class="fault" role="alert">${icon('triangle-alert', 14)}<span>${what}: ${whyNotSettled(fault)}</span></p>`
    : nothing
