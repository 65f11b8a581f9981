/** The layout of one actor: chart over replay over log, details beside; narrower: actors-detail-narrow.ts. */
import { css } from 'lit'
import { narrowSheet } from './actors-detail-narrow.ts'

const frame = css`
  :host {
    display: block;
    height: 100%;
    min-height: 0;
    min-width: 0;
  }
  .loading {
    padding: 16px;
  }
  .actor {
    display: grid;
    grid-template: 50px minmax(160px, 2fr) auto minmax(110px, 1fr) / minmax(0, 1fr) 264px;
    grid-template-areas: 'header details' 'stage details' 'bar details' 'log details';
    height: 100%;
    min-height: 0;
  }
  header {
    grid-area: header;
    padding: 0 12px 0 16px;
    border-bottom: 1px solid var(--sb-border);
    min-width: 0;
  }
  h2 {
    display: flex;
    align-items: baseline;
    gap: 8px;
    flex: 0 1 auto;
    min-width: 0;
    font-size: var(--sb-text-m);
    font-weight: 600;
  }
  .actor:has(.told) {
    grid-template-rows: 50px minmax(160px, 3fr) auto minmax(110px, 1fr);
  }
  h2 .mono {
    flex: none;
    font-size: var(--sb-text-m);
  }
  /* The title gives way first: the kind and the end of the id say which actor this is. */
  h2 .title {
    flex: 0 1000 auto;
    min-width: 0;
    font-weight: 420;
  }
  header .chip {
    flex: none;
  }
  .zoom {
    display: flex;
    flex: none;
  }
  .back {
    display: none;
    margin-inline-start: -8px;
  }
  .stage {
    grid-area: stage;
    display: flex;
    flex-direction: column;
    min-height: 0;
    position: relative;
  }
  signalbox-statechart {
    flex: 1 1 180px;
    min-height: 150px;
  }
  .stage.past::after {
    content: '';
    position: absolute;
    inset: 0;
    border: 2px solid var(--sb-warn);
    pointer-events: none;
  }
  /* What there is to know is read first; the chart has the rest, and never less than shows where the actor is. */
  .told {
    flex: 0 1 auto;
    min-height: 0;
    overflow: auto;
    scrollbar-width: thin;
  }
  .told:has(.why) {
    min-height: 80px;
  }
  .told:focus-visible {
    outline-offset: -2px;
  }
  .why {
    border-radius: 0;
    border-bottom: 1px solid var(--sb-border);
    padding: 8px 16px;
  }
  .why p {
    max-width: 92ch;
    text-wrap: pretty;
  }
`

const replay = css`
  .bar {
    grid-area: bar;
    border-top: 1px solid var(--sb-border);
    gap: 4px;
    padding: 6px 12px;
    font-size: var(--sb-text-s);
    border-bottom: 1px solid var(--sb-border);
  }
  .bar .ghost:disabled {
    background: transparent;
    border-color: transparent;
    opacity: 0.55;
  }
  .bar > .num {
    min-width: 56px;
    text-align: end;
    margin-inline-end: 8px;
  }
  input[type='range'] {
    flex: 1;
    min-width: 60px;
    min-height: 24px;
    margin: 0 8px;
    padding: 0;
    border: 0;
    appearance: none;
    background: transparent;
  }
  input[type='range']::-webkit-slider-runnable-track {
    height: 4px;
    border-radius: 2px;
    background: var(--sb-border-strong);
  }
  input[type='range']::-moz-range-track {
    height: 4px;
    border-radius: 2px;
    background: var(--sb-border-strong);
  }
  input[type='range']::-webkit-slider-thumb {
    appearance: none;
    width: 14px;
    height: 14px;
    margin-top: -5px;
    border-radius: 50%;
    background: var(--sb-accent-solid);
    border: 2px solid var(--sb-surface);
    box-shadow: 0 0 0 1px var(--sb-accent-solid);
  }
  input[type='range']::-moz-range-thumb {
    width: 11px;
    height: 11px;
    border-radius: 50%;
    background: var(--sb-accent-solid);
    border: 2px solid var(--sb-surface);
    box-shadow: 0 0 0 1px var(--sb-accent-solid);
  }
  .scroll.log {
    grid-area: log;
    min-height: 0;
    position: relative;
  }
  .panes,
  .parts {
    display: none;
  }
  table {
    width: 100%;
    border-collapse: separate;
    border-spacing: 0;
    font-size: 12.5px;
  }
  th,
  td {
    height: 27px;
    padding: 0 12px;
    text-align: start;
    font-weight: 400;
    white-space: nowrap;
    max-width: 260px;
  }
  thead th {
    position: sticky;
    top: 0;
    z-index: 1;
    background: var(--sb-surface);
    color: var(--sb-text-3);
    font-size: var(--sb-text-xs);
    border-bottom: 1px solid var(--sb-border);
  }
  .end {
    text-align: end;
    width: 48px;
  }
  tbody tr:not(.earlier, .skipped):hover {
    background: var(--sb-hover);
  }
  tbody tr[aria-current] {
    background: var(--sb-accent-soft);
  }
  .stage.past ~ .log tr[aria-current] {
    background: var(--sb-warn-soft);
  }
  /* Not by opacity: text that is dimmed that way fails contrast. */
  .future td,
  .future .bare {
    color: var(--sb-text-3);
  }
  .bare {
    all: unset;
    min-height: 24px;
    font: 500 var(--sb-text-s) / 24px var(--sb-font);
    color: var(--sb-text);
    cursor: default;
  }
  .bare.error {
    color: var(--sb-bad);
  }
  .bare:focus-visible {
    outline: 2px solid var(--sb-focus);
    border-radius: 3px;
  }
  .chip.tiny {
    height: 16px;
    margin-inline-start: 8px;
    padding: 0 5px;
    font-size: 10.5px;
  }
`

const details = css`
  .details {
    grid-area: details;
    padding: 14px 16px 24px;
    border-inline-start: 1px solid var(--sb-border);
  }
  .details:focus-visible {
    outline-offset: -2px;
  }
  section {
    display: grid;
    gap: 6px;
    padding-bottom: 14px;
    margin-bottom: 14px;
    border-bottom: 1px solid var(--sb-border);
  }
  section:last-of-type {
    border: 0;
  }
  .path {
    display: flex;
    flex-wrap: wrap;
    gap: 0 4px;
    font-size: var(--sb-text-s);
    line-height: 18px;
    color: var(--sb-text-3);
  }
  .path li + li::before {
    content: '› ';
    white-space: pre;
  }
  .path .leaf {
    color: var(--sb-accent);
    font-weight: 600;
  }
  .next li {
    padding: 3px 0;
    break-inside: avoid;
    line-height: 17px;
    overflow-wrap: anywhere;
  }
  .next .event {
    font-size: 12.5px;
    font-weight: 500;
  }
  .next .raw {
    font-size: 11px;
  }
  .next .to {
    display: block;
    padding-inline-start: 10px;
    font-size: var(--sb-text-s);
    color: var(--sb-text-2);
  }
  .meaning {
    font-size: 12.5px;
    overflow-wrap: anywhere;
  }
  .timers .row {
    gap: 7px;
    font-size: var(--sb-text-s);
    min-height: 22px;
  }
  .then {
    margin: -4px 0 14px;
    font-size: var(--sb-text-s);
  }
  dl {
    display: grid;
    gap: 4px;
    font-size: 12.5px;
  }
  dl > div {
    display: grid;
    grid-template-columns: 74px minmax(0, 1fr);
  }
  dt {
    color: var(--sb-text-3);
  }
  dd {
    overflow-wrap: anywhere;
  }
  dd .icon {
    display: inline-block;
    vertical-align: -2px;
  }
  .link {
    color: var(--sb-accent);
    text-decoration: underline;
    text-underline-offset: 2px;
  }
`

export const detailSheet = [frame, replay, details, narrowSheet]
