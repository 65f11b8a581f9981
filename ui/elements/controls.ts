/**
 * How native buttons and fields look. Leaf controls stay native elements: labels, ARIA relations and form behaviour do not
 * cross shadow roots, so a control that is not an element of its own is a control that works. Adopted through sheet.ts.
 */
import { css } from 'lit'

export const buttons = css`
  button,
  .button {
    font: 520 var(--sb-text-m) / 1 var(--sb-font);
    color: var(--sb-text);
    background: var(--sb-raised);
    border: 1px solid var(--sb-border-strong);
    border-radius: var(--sb-radius-m);
    height: var(--sb-control);
    padding: 0 11px;
    display: inline-flex;
    align-items: center;
    gap: 7px;
    flex: none;
    white-space: nowrap;
    cursor: default;
    box-shadow: var(--sb-shadow-1);
    transition:
      background-color var(--sb-fast) var(--sb-ease),
      border-color var(--sb-fast) var(--sb-ease);
  }
  button:hover:not(:disabled),
  .button:hover {
    background: var(--sb-hover);
  }
  button.primary {
    background: var(--sb-accent-solid);
    border-color: transparent;
    color: var(--sb-on-accent);
  }
  button.primary:hover:not(:disabled) {
    background: var(--sb-accent-solid-hover);
  }
  button.danger {
    color: var(--sb-bad);
  }
  button.destructive {
    background: var(--sb-bad-solid);
    border-color: transparent;
    color: oklch(1 0 0);
  }
  button.ghost,
  .button.ghost {
    background: transparent;
    border-color: transparent;
    box-shadow: none;
    color: var(--sb-text-2);
  }
  button.ghost:hover:not(:disabled),
  .button.ghost:hover {
    background: var(--sb-hover);
    color: var(--sb-text);
  }
  button.ghost.danger {
    color: var(--sb-bad);
  }
  .icon-only {
    width: var(--sb-control);
    padding: 0;
    justify-content: center;
  }
  button.small,
  .button.small {
    height: 26px;
    padding: 0 8px;
    font-size: var(--sb-text-s);
  }
  button.small.icon-only,
  .button.small.icon-only {
    width: 26px;
    padding: 0;
  }
  button:disabled {
    color: var(--sb-text-3);
    background: var(--sb-hover);
    border-color: var(--sb-border);
    box-shadow: none;
  }
  button.primary:disabled {
    color: var(--sb-text-2);
  }
  kbd {
    font: 500 10.5px/16px var(--sb-font);
    min-width: 18px;
    height: 18px;
    padding: 0 4px;
    text-align: center;
    border: 1px solid var(--sb-border-strong);
    border-radius: 4px;
    color: var(--sb-text-2);
    background: var(--sb-surface);
    display: inline-block;
  }
  .primary kbd {
    color: inherit;
    background: transparent;
    border-color: oklch(1 0 0 / 0.45);
  }
  .segments {
    display: inline-flex;
    gap: 2px;
    padding: 2px;
    background: var(--sb-hover);
    border-radius: var(--sb-radius-m);
  }
  .segments button {
    height: 24px;
    padding: 0 9px;
    border: 0;
    background: transparent;
    box-shadow: none;
    font-size: var(--sb-text-s);
    color: var(--sb-text-2);
    border-radius: 5px;
  }
  .segments button[aria-pressed='true'],
  .segments button[aria-selected='true'] {
    background: light-dark(oklch(1 0 0), oklch(0.345 0.01 260));
    color: var(--sb-text);
    box-shadow: var(--sb-shadow-1);
  }
`

export const fields = css`
  input,
  textarea,
  select {
    font: 400 var(--sb-text-m) / 20px var(--sb-font);
    color: var(--sb-text);
    background: var(--sb-surface);
    border: 1px solid var(--sb-field);
    border-radius: var(--sb-radius-m);
    padding: 4px 9px;
    min-height: var(--sb-control);
    width: 100%;
  }
  input::placeholder,
  textarea::placeholder {
    color: var(--sb-text-3);
    opacity: 1;
  }
  input[aria-invalid='true'],
  textarea[aria-invalid='true'] {
    border-color: var(--sb-bad);
  }
  input[type='checkbox'],
  input[type='radio'] {
    width: 15px;
    height: 15px;
    min-height: 15px;
    margin: 0;
    accent-color: var(--sb-accent-solid);
  }
  .field {
    display: grid;
    gap: 5px;
  }
  .field > label {
    font-weight: 540;
  }
  .fault {
    display: flex;
    gap: 6px;
    align-items: flex-start;
    color: var(--sb-bad);
  }
  .fault .icon {
    margin-top: 3px;
  }
`
