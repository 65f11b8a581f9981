/** Layout of the list of tasks and its pane for the open one. */
import { css } from 'lit'

const rows = css`
  .rows {
    position: relative;
    padding: 6px;
  }
  .rows > .notice {
    margin-bottom: 6px;
  }
  .item {
    display: grid;
    grid-template-columns: 18px minmax(0, 1fr) auto;
    column-gap: 9px;
    align-content: center;
    height: var(--sb-row);
    padding: 0 10px;
    border-radius: var(--sb-radius-m);
    scroll-margin: 8px;
    content-visibility: auto;
    contain-intrinsic-size: auto var(--sb-row);
  }
  .item:hover {
    background: var(--sb-hover);
  }
  .item[aria-current] {
    background: var(--sb-accent-soft);
  }
  .item:focus-visible {
    outline-offset: -2px;
  }
  .mark {
    grid-row: span 2;
    padding-top: 2px;
  }
  .title {
    font-weight: 540;
  }
  .age {
    font-size: var(--sb-text-s);
    color: var(--sb-text-3);
  }
  .sub {
    grid-column: 2 / -1;
    display: flex;
    gap: 10px;
    align-items: center;
    min-width: 0;
    font-size: var(--sb-text-s);
    line-height: 18px;
    color: var(--sb-text-2);
  }
  .sub bdi {
    flex: 1;
  }
  .word {
    flex: none;
    font-weight: 540;
  }
  .arrived {
    width: 100%;
    justify-content: center;
    height: 28px;
    margin-bottom: 6px;
    font-size: var(--sb-text-s);
    color: var(--sb-accent);
    background: var(--sb-surface);
    border-color: var(--sb-border);
  }
  .more {
    width: 100%;
    justify-content: center;
    margin-top: 4px;
  }
  .end {
    padding: 10px;
    font-size: var(--sb-text-s);
    text-align: center;
  }
  .skeleton .bars {
    display: grid;
    gap: 8px;
    align-content: center;
    height: var(--sb-row);
    padding: 0 10px 0 37px;
  }
  .skeleton i:last-child {
    width: 45%;
  }
`

export const tasksSheet = [
  rows,
  css`
    :host {
      height: 100%;
      background: var(--sb-surface);
    }
    .panes {
      display: grid;
      grid-template-columns: 384px minmax(0, 1fr);
      height: 100%;
    }
    .panes.wide {
      grid-template-columns: minmax(0, 1fr);
    }
    .panes.wide .list-pane {
      display: none;
    }
    .list-pane {
      display: grid;
      grid-template-rows: auto minmax(0, 1fr) auto auto;
      grid-template-columns: minmax(0, 1fr);
      min-height: 0;
      container: list / size;
      background: var(--sb-sunken);
      border-inline-end: 1px solid var(--sb-border);
    }
    header {
      padding: 11px 12px 8px;
      border-bottom: 1px solid var(--sb-border);
    }
    .top {
      height: 28px;
      padding: 0 4px;
    }
    h1 {
      font-size: var(--sb-text-l);
      font-weight: 620;
      letter-spacing: -0.01em;
    }
    .filters {
      display: flex;
      gap: 1px;
      margin: 6px -2px 0;
      padding: 2px;
      overflow-x: auto;
      scrollbar-width: none;
    }
    .filters button {
      height: 26px;
      padding: 0 8px;
      font-size: var(--sb-text-s);
      border: 0;
      background: none;
      box-shadow: none;
      color: var(--sb-text-2);
    }
    .filters button:hover {
      background: var(--sb-hover);
    }
    .filters button[aria-pressed='true'] {
      background: var(--sb-selected);
      color: var(--sb-text);
      font-weight: 580;
    }
    footer {
      gap: 4px;
      padding: 7px 14px;
      font-size: var(--sb-text-xs);
      color: var(--sb-text-3);
      border-top: 1px solid var(--sb-border);
    }
    .detail {
      min-width: 0;
      min-height: 0;
      background: var(--sb-surface);
    }
    .detail > * {
      height: 100%;
    }
    @container console (max-width: 1080px) {
      .panes {
        grid-template-columns: 316px minmax(0, 1fr);
      }
    }
    @container console (max-width: 720px) {
      .panes {
        grid-template-columns: minmax(0, 1fr);
      }
      .panes.open .list-pane,
      .panes:not(.open) .detail {
        display: none;
      }
      footer.row {
        display: none;
      }
    }
  `,
]
