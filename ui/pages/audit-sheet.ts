/** Layout of the audit page, and of a task's own history. */
import { css } from 'lit'

export const recordSheet = css`
  .day {
    display: grid;
    gap: 2px;
  }
  .day h2 {
    padding: 6px 0;
  }
  .record {
    display: grid;
    grid-template-columns: 76px 20px minmax(0, 1fr);
    gap: 10px;
    padding: 7px 0;
    border-top: 1px solid var(--sb-border);
    content-visibility: auto;
    contain-intrinsic-size: auto 37px;
  }
  .record .face {
    padding-top: 3px;
  }
  .told {
    display: grid;
    grid-template-columns: minmax(0, 1fr) auto;
    gap: 1px 12px;
    min-width: 0;
  }
  .told > p {
    grid-column: 1;
  }
  /* Beside the sentence until it is opened, then below it. */
  .told details:not([open]) {
    grid-column: 2;
    grid-row: 1;
  }
  .told details[open] {
    grid-column: 1 / -1;
  }
  .told p {
    overflow-wrap: anywhere;
  }
  .told b {
    font-weight: 600;
  }
  .told .name {
    display: inline-flex;
    height: 20px;
    padding: 0 4px 0 0;
    gap: 6px;
    border: 0;
    background: transparent;
    box-shadow: none;
    font-weight: 600;
    vertical-align: bottom;
  }
  .told .name:hover {
    text-decoration: underline;
  }
  .told .avatar {
    width: 18px;
    height: 18px;
    font-size: 8px;
  }
  .task {
    flex-wrap: wrap;
  }
  .told summary {
    width: fit-content;
    line-height: 24px;
    font-size: var(--sb-text-xs);
  }
  .raw {
    display: grid;
    gap: 1px;
    padding: 8px 10px;
    margin-top: 4px;
    border-radius: var(--sb-radius-m);
    background: var(--sb-sunken);
  }
  .raw > div {
    display: grid;
    grid-template-columns: 130px minmax(0, 1fr);
    gap: 10px;
  }
  .raw dt {
    color: var(--sb-text-3);
  }
  .raw dd {
    overflow-wrap: anywhere;
  }
`

export const auditSheet = [
  recordSheet,
  css`
    :host(signalbox-audit) {
      display: grid;
      grid-template-rows: auto minmax(0, 1fr);
      height: 100%;
    }
    .head {
      display: flex;
      align-items: center;
      gap: 10px;
      min-height: 62px;
      padding: 12px 24px;
      border-bottom: 1px solid var(--sb-border);
    }
    .body {
      padding: 20px 24px 32px;
    }
    .body:focus-visible {
      outline-offset: -2px;
    }
    .in {
      display: grid;
      gap: 16px;
      max-width: 980px;
    }
    .filters {
      display: flex;
      flex-wrap: wrap;
      align-items: center;
      gap: 8px 12px;
      position: sticky;
      top: -20px;
      z-index: 1;
      padding: 8px 0;
      background: var(--sb-surface);
    }
    .filters .field {
      display: flex;
      align-items: center;
      gap: 6px;
    }
    .filters .field span {
      color: var(--sb-text-2);
      font-size: var(--sb-text-s);
    }
    .filters select,
    .filters input {
      width: auto;
      max-width: 180px;
    }
    .empty.small {
      height: auto;
    }
    .more {
      justify-self: start;
    }
    .chain {
      display: grid;
      gap: 12px;
      padding: 16px 18px;
    }
    .chain .top {
      align-items: flex-start;
    }
    .chain strong {
      font-weight: 600;
      font-size: var(--sb-text-l);
    }
    .chain .facts {
      display: grid;
      gap: 4px;
    }
    .chain .facts > div {
      display: grid;
      grid-template-columns: 120px minmax(0, 1fr);
      gap: 10px;
      align-items: center;
      min-height: 26px;
    }
    .chain dt {
      color: var(--sb-text-2);
    }
    .wrap {
      flex-wrap: wrap;
    }
    .chain summary {
      width: fit-content;
      color: var(--sb-text-2);
    }
    .proves {
      display: grid;
      gap: 6px;
      padding-top: 8px;
      max-width: 72ch;
    }
    .proves li {
      display: list-item;
      list-style: disc;
      margin-inline-start: 18px;
    }
    @container console (max-width: 720px) {
      .head {
        padding: 12px 16px;
      }
      .body {
        padding: 16px;
      }
      .filters {
        position: static;
      }
      .segments {
        flex-wrap: wrap;
      }
      .record {
        grid-template-columns: 20px minmax(0, 1fr);
        gap: 2px 8px;
      }
      .record time {
        grid-column: 1 / -1;
        font-size: var(--sb-text-xs);
      }
      .told {
        grid-template-columns: minmax(0, 1fr);
      }
      .told details:not([open]) {
        grid-column: auto;
        grid-row: auto;
      }
      .raw > div {
        grid-template-columns: 1fr;
      }
    }
    @container console (max-width: 480px) {
      .chain .facts > div {
        grid-template-columns: minmax(0, 1fr);
        gap: 0;
      }
    }
  `,
]
