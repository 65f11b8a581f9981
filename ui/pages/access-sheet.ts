/** Layout of the page of access and its views. */
import { css } from 'lit'

const lists = css`
  table {
    width: 100%;
    border-collapse: separate;
    border-spacing: 0;
    table-layout: fixed;
  }
  th,
  td {
    text-align: start;
    font-weight: 400;
    padding: 8px 12px 8px 0;
    height: 46px;
    border-bottom: 1px solid var(--sb-border);
    overflow-wrap: anywhere;
  }
  thead th {
    height: 34px;
    font-size: var(--sb-text-s);
    color: var(--sb-text-3);
  }
  th[scope='row'] {
    overflow: hidden;
  }
  th .name,
  th .faint {
    display: block;
  }
  .name {
    font-weight: 560;
  }
  .end {
    text-align: end;
    padding-inline-end: 0;
  }
  .off {
    color: var(--sb-text-3);
  }
  .rows li {
    display: grid;
    gap: 6px;
    padding: 12px 16px;
  }
  .rows li + li {
    border-top: 1px solid var(--sb-border);
  }
  .chips {
    display: flex;
    flex-wrap: wrap;
    gap: 5px;
  }
`

const forms = css`
  .tools {
    flex-wrap: wrap;
    gap: 10px;
  }
  .tools .label,
  .how summary {
    font-weight: 560;
    color: var(--sb-text-2);
  }
  .tools input:not([type='checkbox']) {
    width: min(260px, 100%);
  }
  .tools input[type='checkbox'] {
    flex: none;
  }
  .grant {
    display: grid;
    grid-template-columns: repeat(4, minmax(0, 1fr)) auto;
    gap: 12px;
    align-items: end;
    padding: 14px 16px;
  }
  .grant > p {
    grid-column: 1 / -1;
  }
  .choose .field {
    flex: 1 1 240px;
  }
  .shell {
    display: block;
    padding: 8px 10px;
    border-radius: var(--sb-radius-m);
    background: var(--sb-sunken);
    border: 1px solid var(--sb-border);
    overflow-wrap: anywhere;
  }
  .how {
    display: grid;
    gap: 8px;
  }
  .how[open] summary {
    margin-bottom: 8px;
  }
  .how .shell {
    margin-top: 8px;
  }
  .wrap {
    flex-wrap: wrap;
  }
`

export const accessSheet = [
  lists,
  forms,
  css`
    :host {
      display: block;
    }
    :host(signalbox-access) {
      display: grid;
      grid-template-rows: auto minmax(0, 1fr);
      height: 100%;
    }
    .head {
      display: flex;
      flex-wrap: wrap;
      align-items: center;
      gap: 8px 20px;
      min-height: 62px;
      padding: 12px 24px;
      border-bottom: 1px solid var(--sb-border);
    }
    .segments {
      flex-wrap: wrap;
    }
    .segments a {
      padding: 2px 10px;
      border-radius: 5px;
      font-size: var(--sb-text-s);
      font-weight: 520;
      color: var(--sb-text-2);
    }
    .segments a[aria-current] {
      background: light-dark(oklch(1 0 0), oklch(0.345 0.01 260));
      color: var(--sb-text);
      box-shadow: var(--sb-shadow-1);
    }
    .body {
      padding: 20px 24px 32px;
    }
    .body:focus-visible {
      outline-offset: -2px;
    }
    .in,
    :host(:not(signalbox-access)) {
      display: grid;
      align-content: start;
      gap: 16px;
      max-width: 980px;
    }
    .empty.small {
      height: auto;
      padding: 28px;
    }
    .teams {
      display: grid;
      grid-template-columns: repeat(auto-fill, minmax(min(320px, 100%), 1fr));
      gap: 12px;
      align-items: start;
    }
    .teams > li {
      display: grid;
      gap: 10px;
      padding: 12px 16px 14px;
    }
    .teams h3 {
      flex: 1 1 140px;
      font-weight: 600;
      overflow-wrap: anywhere;
    }
    .top {
      flex-wrap: wrap;
    }
    .members {
      display: grid;
      gap: 4px;
    }
    .verdict {
      display: grid;
      gap: 10px;
      padding: 16px 18px 18px;
    }
    .answer {
      align-items: flex-start;
    }
    .answer strong {
      font-weight: 600;
      font-size: var(--sb-text-l);
      color: var(--sb-text);
      overflow-wrap: anywhere;
    }
    .answer .icon {
      margin-top: 1px;
    }
    .reasons {
      display: grid;
      gap: 6px;
    }
    .reasons li {
      align-items: flex-start;
      overflow-wrap: anywhere;
    }
    .reasons .icon {
      margin-top: 3px;
    }
    .reasons li:not(.faint) .icon {
      color: var(--sb-ok);
    }
    @container console (max-width: 860px) {
      .grant {
        grid-template-columns: 1fr 1fr;
      }
      .grant button {
        justify-self: start;
      }
      .body {
        padding: 16px;
      }
      .head {
        padding: 12px 16px;
      }
    }
    @container console (max-width: 720px) {
      table,
      tbody,
      tr,
      th[scope='row'],
      td {
        display: block;
      }
      thead {
        position: absolute;
        clip-path: inset(50%);
        width: 1px;
        height: 1px;
        overflow: hidden;
      }
      tr {
        padding: 10px 0;
        border-bottom: 1px solid var(--sb-border);
      }
      th,
      td {
        height: auto;
        padding: 3px 0;
        border: 0;
        text-align: start;
      }
      td.end {
        text-align: start;
      }
    }
  `,
]
