/** Layout of one agent's page. */
import { css } from 'lit'

export const agentSheet = css`
  :host {
    display: grid;
    grid-template-rows: auto minmax(0, 1fr);
    height: 100%;
  }
  .head {
    padding: 14px 24px 16px;
    border-bottom: 1px solid var(--sb-border);
  }
  .crumb {
    font-size: var(--sb-text-s);
    margin-bottom: 8px;
  }
  .crumb a {
    gap: 5px;
  }
  .crumb .aside {
    margin-inline-start: auto;
  }
  .crumb a:hover {
    color: var(--sb-text);
  }
  .title {
    gap: 12px;
  }
  .title > div {
    display: grid;
  }
  .title .avatar {
    width: 38px;
    height: 38px;
    border-radius: 10px;
  }
  .body {
    padding: 24px;
  }
  .body:focus-visible {
    outline-offset: -2px;
  }
  .in {
    display: grid;
    gap: 28px;
    max-width: 820px;
  }
  section {
    display: grid;
    gap: 10px;
    min-width: 0;
  }
  .lead {
    font-size: var(--sb-text-l);
    line-height: 23px;
    max-width: 66ch;
    margin-bottom: 8px;
  }
  .facts {
    display: grid;
  }
  .facts > div {
    display: grid;
    grid-template-columns: 132px minmax(0, 1fr);
    gap: 12px;
    padding: 7px 0;
    border-bottom: 1px solid var(--sb-border);
  }
  dt {
    color: var(--sb-text-2);
  }
  dd {
    overflow-wrap: anywhere;
  }
  .abilities {
    display: flex;
    flex-wrap: wrap;
    gap: 2px 18px;
  }
  .abilities .row {
    gap: 5px;
  }
  .abilities .row:not(.faint) .icon {
    color: var(--sb-ok);
  }
  .pad {
    padding: 14px 16px;
  }
  .trust {
    display: grid;
    gap: 8px;
  }
  .trust b {
    font-weight: 600;
  }
  .trust .facts > div:last-child {
    border: 0;
  }
  .skills li {
    display: grid;
    grid-template-columns: minmax(0, 1fr);
    overflow-wrap: anywhere;
    gap: 4px;
    padding: 12px 16px;
  }
  .skills li + li {
    border-top: 1px solid var(--sb-border);
  }
  .skills b {
    font-weight: 600;
  }
  .tags {
    display: flex;
    flex-wrap: wrap;
    gap: 5px;
    padding-top: 3px;
  }
  .tags .chip {
    height: auto;
    min-height: 20px;
    max-width: 100%;
    line-height: 18px;
    border-radius: 10px;
    white-space: normal;
  }
  .confirm {
    width: min(460px, calc(100vw - 32px));
    padding: 20px 24px;
  }
  .confirm p {
    margin-top: 10px;
  }
  .confirm footer {
    display: flex;
    justify-content: flex-end;
    gap: 8px;
    margin-top: 20px;
  }
  .skeleton .bars {
    display: grid;
    gap: 9px;
    padding: 12px 0;
    max-width: 820px;
  }
  .skeleton i:last-child {
    width: 60%;
  }
  @container console (max-width: 720px) {
    .head {
      padding: 12px 16px;
    }
    .title {
      flex-wrap: wrap;
    }
    .title > div {
      flex-basis: calc(100% - 60px);
    }
    .body {
      padding: 16px;
    }
    .facts > div {
      grid-template-columns: 1fr;
      gap: 0;
    }
  }
`
