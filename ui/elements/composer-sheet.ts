/** Layout of the composer. */
import { css } from 'lit'

export const composerSheet = css`
  :host {
    display: grid;
    /* Not as wide as the longest word in the field, or in what it says while it is empty. */
    grid-template-columns: minmax(0, 1fr);
    gap: 10px;
  }
  .box {
    border: 1px solid var(--sb-field);
    border-radius: var(--sb-radius-l);
    background: var(--sb-surface);
    padding: 4px;
  }
  .box:focus-within {
    outline: 2px solid var(--sb-focus);
    outline-offset: -1px;
  }
  textarea {
    display: block;
    border: 0;
    background: transparent;
    resize: none;
    padding: 7px 9px 2px;
    min-height: 48px;
    max-height: 240px;
    field-sizing: content;
  }
  textarea:focus-visible {
    outline: none;
  }
  textarea:disabled {
    color: var(--sb-text-3);
  }
  .actions {
    padding: 2px 2px 2px 9px;
    font-size: var(--sb-text-s);
  }
  .actions button {
    height: 28px;
  }
  .notice {
    flex-wrap: wrap;
    align-items: flex-start;
  }
  .notice .grow {
    flex-basis: 240px;
  }
  .quoted {
    margin: 4px 0;
    padding-inline-start: 10px;
    border-inline-start: 2px solid var(--sb-border-strong);
    color: var(--sb-text-2);
    max-height: 80px;
    overflow: auto;
  }
`
