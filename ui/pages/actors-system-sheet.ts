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
  .head {
    display: grid;
    justify-items: start;
    gap: 4px;
  }
  .whole,
  .needing {
    font-size: var(--sb-text-l);
    font-weight: 600;
  }
  .needing .standing {
    text-decoration: underline;
    text-underline-offset: 2px;
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
  }
  .kind,
  tbody .mono {
    white-space: nowrap;
  }
  .kind,
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
  .processes {
    max-width: 1000px;
    font-size: 12.5px;
  }
  .process {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 2px 10px;
    min-height: 34px;
    padding: 4px 0;
    border-bottom: 1px solid var(--sb-border);
  }
  .told {
    display: flex;
    flex-wrap: wrap;
    gap: 2px 14px;
    margin-inline-start: auto;
    color: var(--sb-text-2);
  }
  .pick {
    padding: 2px 4px;
    margin-inline-start: -4px;
    border-radius: var(--sb-radius-s);
    text-decoration: underline;
    text-underline-offset: 2px;
    overflow-wrap: anywhere;
  }
  .pick[aria-current] {
    background: var(--sb-selected);
    font-weight: 600;
    text-decoration: none;
  }
  /* What belongs to the process above it. */
  .loops {
    display: grid;
    gap: 6px;
    margin: 8px 0 14px 5px;
    padding-inline-start: 14px;
    border-inline-start: 2px solid var(--sb-border);
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
  /* A row is a block, because a table's columns would break words: its name, how it stands, then numbers with what they are. */
  @container console (max-width: 720px) {
    thead {
      position: absolute;
      width: 1px;
      height: 1px;
      overflow: hidden;
      clip-path: inset(50%);
    }
    table,
    tbody {
      display: block;
    }
    tbody tr {
      display: flex;
      flex-wrap: wrap;
      align-items: baseline;
      gap: 2px 14px;
      padding: 8px 0;
      border-bottom: 1px solid var(--sb-border);
    }
    tbody th,
    tbody td {
      height: auto;
      padding: 0;
      border: 0;
      text-align: start;
    }
    tbody th,
    .standing-cell {
      flex: 1 0 100%;
      min-width: 0;
    }
    td[data-label]::before {
      content: attr(data-label) ' ';
      color: var(--sb-text-3);
    }
    .told {
      flex: 1 0 100%;
    }
    /* For a finger, without moving the lines: a number is a few pixels wide. */
    .link {
      padding: 4px 9px;
      margin-inline: -9px;
    }
    .needing {
      padding-block: 2px;
    }
  }
`
