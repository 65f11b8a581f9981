/** The layout of one actor where there is less room, by the console's width: panes below the chart, then one part at a time. */
import { css } from 'lit'

export const narrowSheet = css`
  @container console (max-width: 1360px) {
    .actor {
      grid-template: 50px minmax(160px, 1.7fr) auto auto minmax(110px, 1fr) / minmax(0, 1fr);
      grid-template-areas: 'header' 'stage' 'bar' 'panes' 'below';
    }
    .actor:has(.told) {
      grid-template-rows: 50px minmax(160px, 3fr) auto auto minmax(110px, 1fr);
    }
    .panes {
      display: inline-flex;
      grid-area: panes;
      justify-self: start;
      margin: 6px 12px;
    }
    .scroll.log,
    .scroll.details {
      grid-area: below;
    }
    .scroll.details {
      min-height: 0;
      padding-top: 4px;
      border: 0;
    }
    /* Not on the pane itself: columns in a box of fixed height grow sideways, out of sight. */
    .sections {
      columns: 2 280px;
      column-gap: 24px;
    }
    .actor:not(.shows-details) > .scroll.details,
    .shows-details > .scroll.log {
      display: none;
    }
    .shows-details section {
      break-inside: avoid;
    }
  }
  @container console (max-width: 900px) {
    /* One line is too short for both. */
    h2 {
      flex-direction: column;
      align-items: stretch;
      gap: 0;
      line-height: 17px;
    }
    h2 .title {
      flex: none;
      font-size: var(--sb-text-s);
    }
    .tool .wide {
      position: absolute;
      width: 1px;
      height: 1px;
      overflow: hidden;
      clip-path: inset(50%);
    }
  }
  @container console (max-width: 720px) {
    .back {
      display: inline-flex;
    }
    header {
      padding-inline-end: 8px;
      gap: 4px;
    }
    h2 .mono {
      flex: 0 1 auto;
    }
    .zoom {
      display: none;
    }
    /* For a finger, without moving the lines. */
    .details .link {
      padding: 4px;
      margin-inline: -4px;
    }
    td:nth-child(4),
    th:nth-child(4),
    td:nth-child(6),
    th:nth-child(6) {
      display: none;
    }
  }
  /* No room for two of them: one at a time, and what there is to know has all of it. */
  @container console (max-width: 640px) {
    .actor,
    .actor:has(.told) {
      grid-template: 50px auto minmax(0, 1fr) auto / minmax(0, 1fr);
      grid-template-areas: 'header' 'parts' 'part' 'bar';
    }
    .panes {
      display: none;
    }
    .parts {
      display: inline-flex;
      grid-area: parts;
      justify-self: start;
      margin: 6px 12px;
    }
    .stage,
    .scroll.log,
    .scroll.details {
      grid-area: part;
      border-top: 1px solid var(--sb-border);
    }
    .actor:not(.shows-told, .shows-chart) > .stage,
    .actor:not(.shows-log) > .scroll.log,
    .shows-told signalbox-statechart,
    .shows-chart .told,
    .shows-told > .bar,
    .shows-details > .bar {
      display: none;
    }
    .bar {
      border-bottom: 0;
    }
  }
  /* A line more for which actor it is and how it stands, and for the slider. */
  @container console (max-width: 480px) {
    .actor,
    .actor:has(.told) {
      grid-template-rows: auto auto minmax(0, 1fr) auto;
    }
    header {
      flex-wrap: wrap;
      padding-block: 8px;
    }
    h2 {
      flex: 1;
    }
    header .grow {
      display: none;
    }
    header .chip {
      order: 1;
      margin-inline-end: 60%;
    }
    th,
    td {
      padding-inline: 6px;
    }
    .bar {
      flex-wrap: wrap;
    }
    .bar > .num {
      flex: 1;
    }
    input[type='range'] {
      order: -1;
      flex: 0 0 calc(100% - 16px);
    }
  }
`
