/** Layout of the list of agents. */
import { css } from 'lit'

export const agentsSheet = css`
  :host {
    display: grid;
    grid-template-rows: auto minmax(0, 1fr);
    height: 100%;
    background: var(--sb-surface);
  }
  :host > signalbox-agent,
  signalbox-agent {
    grid-row: 1 / -1;
    min-height: 0;
  }
  .head {
    display: flex;
    align-items: center;
    gap: 10px;
    min-height: 62px;
    padding: 12px 24px;
    border-bottom: 1px solid var(--sb-border);
  }
  /* Its words may break anywhere, so it would be the first to give way. */
  .head h1 {
    flex: none;
  }
  .head input {
    width: min(260px, 40%);
  }
  .body {
    padding: 0 12px 24px;
  }
  .body > .notice {
    margin: 12px;
  }
  table {
    width: 100%;
    border-collapse: separate;
    border-spacing: 0;
  }
  th,
  td {
    text-align: start;
    font-weight: 400;
    padding: 0 12px;
    height: 54px;
    border-bottom: 1px solid var(--sb-border);
    white-space: nowrap;
  }
  th[scope='row'] {
    width: 44%;
    max-width: 0;
  }
  .right {
    text-align: end;
  }
  thead th {
    position: sticky;
    top: 0;
    z-index: 1;
    height: 36px;
    background: var(--sb-surface);
    font-size: var(--sb-text-s);
    color: var(--sb-text-3);
  }
  tbody tr {
    position: relative;
  }
  tbody tr:hover > * {
    background: var(--sb-hover);
  }
  .who {
    display: flex;
    align-items: center;
    gap: 11px;
  }
  /* The whole row opens the agent; the link stays the one thing to focus. */
  .who::after {
    content: '';
    position: absolute;
    inset: 0;
  }
  .who:focus-visible {
    outline: none;
  }
  .who:focus-visible::after {
    outline: 2px solid var(--sb-focus);
    outline-offset: -2px;
    border-radius: var(--sb-radius-m);
  }
  .names {
    display: grid;
    min-width: 0;
    line-height: 18px;
  }
  .name {
    font-weight: 560;
  }
  .names .mono {
    font-size: 11.5px;
  }
  .trust {
    display: inline-flex;
    gap: 6px;
    align-items: center;
  }
  .unread {
    white-space: normal;
  }
  .unread .row {
    align-items: flex-start;
  }
  .unread .icon {
    margin-top: 3px;
  }
  .skeleton .bars {
    display: grid;
    gap: 7px;
    align-content: center;
    height: 54px;
    padding: 0 12px;
  }
  .skeleton i:first-child {
    width: 22%;
  }
  .skeleton i:last-child {
    width: 14%;
  }
  @container console (max-width: 720px) {
    .head {
      padding: 12px 16px;
    }
    .body {
      padding: 0 4px 24px;
    }
    th[scope='row'] {
      width: 100%;
    }
    tr > :nth-child(3),
    tr > :nth-child(4):not(:last-child) {
      display: none;
    }
    .head .chip {
      display: none;
    }
    .unread {
      min-width: 200px;
    }
  }
  /* No room for columns: an agent's name has the line, and what is known of it the next. */
  @container console (max-width: 560px) {
    .head {
      flex-wrap: wrap;
    }
    .head input {
      order: 1;
      width: 100%;
    }
    table,
    tbody,
    th[scope='row'] {
      display: block;
    }
    thead {
      position: absolute;
      clip-path: inset(50%);
      width: 1px;
      height: 1px;
      overflow: hidden;
    }
    tbody tr {
      display: flex;
      flex-wrap: wrap;
      gap: 4px 16px;
      padding: 10px 12px;
      border-bottom: 1px solid var(--sb-border);
    }
    tbody tr > * {
      height: auto;
      padding: 0;
      border: 0;
    }
    tbody tr:hover,
    tbody tr:hover > * {
      background: var(--sb-hover);
    }
    th[scope='row'] {
      flex: 0 0 100%;
      max-width: 100%;
    }
    td {
      align-self: center;
    }
    /* Under the name, which stands beside the mark. */
    th + td {
      margin-inline-start: 39px;
    }
    .unread {
      flex: 1;
      min-width: 0;
      overflow-wrap: anywhere;
    }
  }
`
