/** Layout of the system's page: tables under one line that says how it stands. */
import { css } from 'lit'

export const systemSheet = css`
  :host {
    height: 100%;
    min-width: 0;
    min-height: 0;
  }
  .all {
    height: 100%;
    padding: 14px 16px 28px;
    display: grid;
    align-content: start;
    gap: 18px;
  }
  .all:focus-visible {
    outline-offset: -2px;
  }
  .whole {
    font-size: var(--sb-text-l);
    font-weight: 600;
  }
  section {
    display: grid;
    gap: 6px;
    min-width: 0;
  }
  h2 {
    font-size: var(--sb-text-m);
    font-weight: 600;
    overflow-wrap: anywhere;
  }
  table {
    width: 100%;
    max-width: 1000px;
    border-collapse: collapse;
    font-size: 12.5px;
  }
  th,
  td {
    height: 30px;
    padding: 3px 14px 3px 0;
    text-align: start;
    font-weight: 400;
    border-bottom: 1px solid var(--sb-border);
  }
  thead th {
    height: 24px;
    font-size: var(--sb-text-xs);
    color: var(--sb-text-3);
    white-space: nowrap;
  }
  tbody th {
    font-weight: 500;
    overflow-wrap: anywhere;
  }
  .does {
    margin-inline-start: 6px;
    color: var(--sb-text-3);
    font-weight: 400;
  }
  .end {
    text-align: end;
  }
  .standing {
    display: inline-flex;
    align-items: center;
    gap: 6px;
    vertical-align: middle;
  }
  td .icon,
  dd .icon {
    display: inline-block;
    vertical-align: -2px;
  }
  .chip.tiny {
    height: 16px;
    padding: 0 5px;
    font-size: 10.5px;
  }
  .link {
    text-decoration: underline;
    text-underline-offset: 2px;
  }
  .pick {
    padding: 2px 4px;
    margin-inline-start: -4px;
    border: 0;
    border-radius: var(--sb-radius-s);
    background: none;
    color: inherit;
    font-size: inherit;
    font-weight: inherit;
    text-align: start;
    text-decoration: underline;
    text-underline-offset: 2px;
    cursor: pointer;
    overflow-wrap: anywhere;
  }
  .pick[aria-pressed='true'] {
    background: var(--sb-selected);
    font-weight: 600;
    text-decoration: none;
  }
  dl {
    display: grid;
    gap: 4px;
    font-size: 12.5px;
  }
  dl > div {
    display: grid;
    grid-template-columns: 92px minmax(0, 1fr);
  }
  dt {
    color: var(--sb-text-3);
  }
  dd {
    overflow-wrap: anywhere;
  }
  @container console (max-width: 720px) {
    th,
    td {
      padding-inline-end: 10px;
    }
    .does {
      display: none;
    }
  }
`
