/** How a compliance report looks wherever it is shown. */
import { css } from 'lit'

export const reportSheet = css`
  .score {
    display: inline-flex;
    gap: 9px;
    align-items: center;
    vertical-align: middle;
  }
  .score .track {
    fill: var(--sb-border-strong);
  }
  .score .value {
    color: var(--sb-text);
    min-width: 24px;
  }
  .report {
    display: grid;
    gap: 14px;
  }
  .report section {
    display: grid;
    gap: 6px;
  }
  .report li {
    padding: 6px 0 6px 22px;
  }
  .report li + li {
    border-top: 1px solid var(--sb-border);
  }
  .report li .mono {
    font-size: 11.5px;
    overflow-wrap: anywhere;
  }
  .report summary {
    cursor: default;
    width: fit-content;
  }
  .passed {
    padding: 6px 0 0 22px;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
  }
`
