/** Layout of one task: header, conversation with the composer below, the column beside them. */
import { css } from 'lit'

const column = css`
  .side {
    min-height: 0;
    padding: 18px 16px;
    background: var(--sb-sunken);
    border-inline-start: 1px solid var(--sb-border);
  }
  .side:focus-visible {
    outline-offset: -2px;
  }
  .side section {
    overflow-wrap: anywhere;
  }
  .side section + section {
    margin-top: 22px;
  }
  .side h2 {
    min-height: 26px;
  }
  .side p,
  .side dl,
  .side ol {
    font-size: var(--sb-text-s);
  }
  .side dl > div {
    display: grid;
    grid-template-columns: 68px minmax(0, 1fr);
    gap: 8px;
    padding: 3px 0;
  }
  .side dt {
    color: var(--sb-text-2);
  }
  .side dd {
    min-width: 0;
  }
  .side dd .ell {
    display: block;
  }
  .timeline li {
    display: flex;
    gap: 8px;
    align-items: center;
    position: relative;
    padding: 4px 0;
  }
  .timeline li + li::before {
    content: '';
    position: absolute;
    inset-inline-start: 6.5px;
    top: -5px;
    height: 9px;
    border-inline-start: 1px solid var(--sb-border-strong);
  }
  .event {
    display: grid;
    grid-template-columns: auto minmax(0, 1fr) auto;
    gap: 2px 8px;
    align-items: start;
    padding: 4px 0;
    list-style: none;
    cursor: default;
  }
  .event .icon {
    margin-top: 3px;
  }
  .bar {
    grid-column: 2 / -1;
    display: block;
    width: 100%;
    height: 2px;
    color: var(--sb-text-3);
  }
  .bar.tone-info {
    color: var(--sb-info);
  }
  .bar.tone-auth {
    color: var(--sb-auth);
  }
  .bar.tone-warn {
    color: var(--sb-warn);
  }
  .bar.tone-bad {
    color: var(--sb-bad);
  }
  .bar.tone-ok {
    color: var(--sb-ok);
  }
  .bar .track {
    fill: var(--sb-border);
  }
  .trace signalbox-json {
    padding: 2px 0 8px 22px;
  }
`

export const taskSheet = [
  column,
  css`
    :host {
      display: grid;
      grid-template-rows: auto minmax(0, 1fr);
      grid-template-columns: minmax(0, 1fr);
      height: 100%;
      background: var(--sb-surface);
    }
    .head {
      display: grid;
      gap: 7px;
      padding: 13px 24px 14px;
      border-bottom: 1px solid var(--sb-border);
    }
    .crumb {
      min-width: 0;
      color: var(--sb-text-2);
    }
    .crumb a:hover {
      color: var(--sb-text);
    }
    .crumb .avatar {
      width: 22px;
      height: 22px;
      border-radius: 6px;
    }
    .crumb a.ell {
      max-width: 50%;
    }
    .back {
      display: none;
    }
    .h-xl {
      display: -webkit-box;
      -webkit-box-orient: vertical;
      -webkit-line-clamp: 2;
      line-clamp: 2;
      overflow: hidden;
    }
    .columns {
      display: grid;
      grid-template-columns: minmax(0, 1fr) 260px;
      min-height: 0;
      position: relative;
    }
    .columns.closed {
      grid-template-columns: minmax(0, 1fr);
    }
    .columns.closed .side {
      display: none;
    }
    .left {
      display: grid;
      grid-template-rows: minmax(0, 1fr) auto;
      min-width: 0;
      min-height: 0;
    }
    .conversation {
      min-height: 0;
    }
    .conversation:focus-visible {
      outline-offset: -2px;
    }
    .in {
      max-width: 820px;
      margin: 0 auto;
      padding: 14px 24px 20px;
    }
    .foot {
      display: flex;
      flex-direction: column;
      gap: 8px;
      width: 100%;
      max-width: 820px;
      margin: 0 auto;
      padding: 8px 24px 16px;
      max-height: 60cqh;
    }
    .foot > * {
      flex: none;
    }
    /* The composer takes its room first, and the conversation keeps more than half of what is left. */
    .foot > .troubles {
      display: grid;
      gap: 8px;
      flex: 0 1 auto;
      min-height: 0;
      max-height: 30cqh;
      border-radius: var(--sb-radius-m);
    }
    .foot:has(signalbox-settle[open]) {
      max-height: 76cqh;
    }
    .foot > .troubles:has(signalbox-settle[open]) {
      max-height: 52cqh;
    }
    .in > .notice {
      margin-bottom: 8px;
    }
    .foot .quoted {
      max-height: 80px;
      overflow: auto;
    }
    .skeleton {
      padding: 24px;
    }
    .skeleton .bars {
      display: grid;
      gap: 9px;
      padding: 12px 0;
      max-width: 640px;
    }
    .skeleton i:last-child {
      width: 60%;
    }
    @container console (max-width: 1240px) {
      .columns {
        grid-template-columns: minmax(0, 1fr);
      }
      .columns.auto .side {
        display: none;
      }
      .columns.open .side {
        position: absolute;
        inset-block: 0;
        inset-inline-end: 0;
        width: min(280px, 100%);
        box-shadow: var(--sb-shadow-2);
      }
    }
    @container console (max-width: 720px) {
      .head {
        padding: 10px 16px 12px;
      }
      .back {
        display: inline-flex;
      }
      .in {
        padding: 10px 16px 16px;
      }
      .foot {
        padding: 0 12px 12px;
      }
    }
    /* Lines are short: one notice with when it is tried next takes more of them, and nobody looks for that below its edge. */
    @container console (max-width: 480px) {
      .foot {
        max-height: 66cqh;
      }
      .foot > .troubles {
        max-height: 48cqh;
      }
    }
  `,
]
