/** How settling a send, and reopening it, look where they are unfolded. */
import { css } from 'lit'

export const settleSheet = css`
  /* A row of ways has the button in it, and below it the whole width for what is unfolded. */
  :host {
    display: contents;
  }
  .settling {
    display: grid;
    gap: 10px;
    flex: 1 0 100%;
    min-width: 0;
    max-width: 520px;
    margin-top: 4px;
    padding: 12px;
    border: 1px solid var(--sb-border);
    border-radius: var(--sb-radius-m);
    background: var(--sb-surface);
    font-size: var(--sb-text-s);
  }
  fieldset {
    display: grid;
    gap: 2px;
    margin: 0;
    padding: 0;
    border: 0;
    min-width: 0;
  }
  legend {
    padding: 0 0 4px;
    font-weight: 540;
    color: var(--sb-text);
  }
  .choice {
    display: flex;
    gap: 8px;
    padding: 3px 6px;
    margin-inline: -6px;
    border-radius: var(--sb-radius-s);
    color: var(--sb-text);
  }
  .choice:hover {
    background: var(--sb-hover);
  }
  .choice input {
    flex: none;
    margin-top: 2px;
  }
  .choice b {
    margin-inline-end: 4px;
    font-weight: 520;
  }
  .field > label {
    color: var(--sb-text);
  }
  textarea {
    resize: vertical;
    max-height: 160px;
    field-sizing: content;
  }
  .row {
    flex-wrap: wrap;
  }
  .row .grow {
    flex-basis: 180px;
  }
  .fault {
    overflow-wrap: anywhere;
  }
  .meanwhile {
    display: flex;
    gap: 7px;
    overflow-wrap: anywhere;
    color: var(--sb-warn);
  }
  .meanwhile .icon {
    flex: none;
    margin-top: 2px;
  }
`
