/**
 * A chart's colours and strokes. One accent says "now"; amber says "needs a person"; the rest is ink of three strengths:
 * could be taken now, was taken, neither. Reads the console's tokens and falls back to system colours without them.
 */
import { css } from 'lit'

const palette = css`
  :host {
    --ink: var(--sb-text, CanvasText);
    --ink-2: var(--sb-text-2, CanvasText);
    --ink-3: var(--sb-text-3, GrayText);
    --paper: var(--sb-surface, Canvas);
    --edge: var(--sb-border, GrayText);
    --edge-strong: var(--sb-border-strong, GrayText);
    --now: var(--sb-accent, Highlight);
    --now-soft: var(--sb-accent-soft, Canvas);
    --alarm: var(--sb-warn, Highlight);
    --alarm-soft: var(--sb-warn-soft, Canvas);
    --line: light-dark(oklch(0.74 0.01 255), oklch(0.44 0.012 260));
    --way: light-dark(oklch(0.47 0.02 258), oklch(0.74 0.012 256));
    --dots: light-dark(oklch(0.9 0.004 250), oklch(0.27 0.006 260));
    --group: light-dark(oklch(0.988 0.002 250 / 0.8), oklch(0.22 0.007 260 / 0.7));
    display: block;
    position: relative;
    overflow: hidden;
    contain: strict;
    min-height: 160px;
    color: var(--ink);
    font: 400 var(--sb-text-m, 13px) / 20px var(--sb-font, system-ui);
    background: radial-gradient(var(--dots) 1px, transparent 1px) 0 0 / 18px 18px var(--sb-sunken, Canvas);
  }
  :host([hidden]) {
    display: none;
  }
`

const canvas = css`
  .canvas {
    display: block;
    width: 100%;
    height: 100%;
    touch-action: none;
    cursor: grab;
  }
  .canvas:active {
    cursor: grabbing;
  }
  .canvas:focus {
    outline: none;
  }
  .canvas:focus-visible {
    outline: 2px solid var(--sb-focus, Highlight);
    outline-offset: -2px;
  }
  text {
    fill: var(--ink);
    user-select: none;
  }
  .name {
    font-weight: 600;
  }
  .kind {
    fill: var(--ink-3);
    font-weight: 500;
  }
  .what,
  .which,
  .event,
  .guard {
    font-family: var(--sb-mono, monospace);
    font-variant-ligatures: none;
    white-space: pre;
  }
  .what {
    fill: var(--ink-3);
  }
  .which {
    fill: var(--ink-2);
  }
  .hot > .what,
  .hot > .which {
    fill: var(--now);
    font-weight: 600;
  }
`

const states = css`
  .box {
    fill: var(--paper);
    stroke: var(--edge-strong);
  }
  .group > .box {
    fill: var(--group);
  }
  .machine > .box {
    fill: none;
    stroke: var(--edge);
  }
  .machine > .name {
    fill: var(--ink-3);
    font-weight: 560;
  }
  .lane > .state > .box {
    stroke-dasharray: 4 4;
  }
  .inner {
    fill: none;
    stroke: var(--edge-strong);
  }
  .state:not(.seen, .group, .machine) > .name {
    fill: var(--ink-2);
  }
  .live:not(.machine) > .box {
    stroke: var(--now);
    stroke-width: 1.5;
  }
  .live.leaf > .box {
    fill: var(--now-soft);
    stroke-width: 2;
  }
  .live > .inner {
    stroke: var(--now);
  }
  .live.leaf > .name {
    fill: var(--now);
  }
  .dot {
    fill: var(--now);
  }
  .live.leaf.attention > .box {
    fill: var(--alarm-soft);
  }
  .live.attention > .box,
  .live.attention > .inner {
    stroke: var(--alarm);
  }
  .live.leaf.attention > .name,
  .live.attention > .dot {
    fill: var(--alarm);
  }
  .start {
    fill: var(--way);
  }
`

const arrows = css`
  .line {
    fill: none;
    stroke: var(--line);
    stroke-width: 1.25;
  }
  .tip {
    fill: var(--line);
  }
  .pill {
    fill: var(--paper);
    stroke: var(--edge);
  }
  .event,
  .guard {
    fill: var(--ink-3);
  }
  .glyph {
    fill: none;
    stroke: var(--ink-3);
    stroke-width: 1.3;
    stroke-linecap: round;
    stroke-linejoin: round;
  }
  .label.taken > .event {
    fill: var(--ink-2);
  }
  .possible > .pill {
    stroke: var(--edge-strong);
  }
  .label.possible > .event {
    fill: var(--ink);
    font-weight: 600;
  }
  .label.possible > .guard {
    fill: var(--ink-2);
  }
  .label.possible > .glyph {
    stroke: var(--ink);
  }
  .initial > .line,
  .taken > .line {
    stroke: var(--way);
    stroke-width: 1.5;
  }
  .initial > .tip,
  .taken > .tip {
    fill: var(--way);
  }
  .arrow.last > .line {
    stroke: var(--now);
    stroke-width: 2.25;
    stroke-dasharray: 6 4;
    /* Below five seconds [WCAG 2.2.2]; each step begins it anew. */
    animation: signalbox-march 1.1s linear 4;
  }
  .arrow.last > .tip {
    fill: var(--now);
  }
  .arrow.last > .pill {
    stroke: var(--now);
  }
  .label.last > .event {
    fill: var(--now);
    font-weight: 700;
  }
  .label.last > .guard {
    fill: var(--now);
  }
  .label.last > .glyph {
    stroke: var(--now);
  }
  .badge {
    fill: var(--way);
  }
  .times {
    fill: var(--paper);
    font-weight: 700;
  }
  .arrow.last > .badge,
  .hot > .badge {
    fill: var(--now);
  }
  @keyframes signalbox-march {
    to {
      stroke-dashoffset: -20;
    }
  }
  @media (prefers-reduced-motion: reduce) {
    .arrow.last > .line {
      animation: none;
      stroke-dasharray: none;
    }
  }
  @media (forced-colors: active) {
    .live.leaf > .box {
      fill: Highlight;
    }
    .live.leaf > .name {
      fill: HighlightText;
    }
    .line {
      stroke: CanvasText;
    }
  }
`

const overview = css`
  .overview {
    position: absolute;
    background: var(--paper);
    border: 1px solid var(--edge);
    border-radius: 7px;
    box-shadow: var(--sb-shadow-1, none);
    cursor: pointer;
  }
  .overview.top {
    top: 10px;
  }
  .overview.bottom {
    bottom: 10px;
  }
  .overview.start {
    left: 10px;
  }
  .overview.end {
    right: 10px;
  }
  .overview rect {
    fill: light-dark(oklch(0.94 0.004 250), oklch(0.28 0.008 260));
    stroke: var(--edge-strong);
    stroke-width: 6;
  }
  .overview .live {
    fill: none;
    stroke: var(--now);
    stroke-width: 8;
  }
  .overview .leaf {
    fill: var(--now);
  }
  .overview .leaf.attention {
    fill: var(--alarm);
    stroke: var(--alarm);
  }
  .overview .window {
    fill: light-dark(oklch(0.5 0.1 259 / 0.07), oklch(0.8 0.08 259 / 0.1));
    stroke: var(--now);
    stroke-width: 8;
  }
`

const outline = css`
  .sr {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
  }
  .outline {
    position: absolute;
    inset: 0;
    overflow: auto;
    padding: 12px 20px 24px;
    background: var(--paper);
    scrollbar-width: thin;
  }
  .outline:focus-visible {
    outline: 2px solid var(--sb-focus, Highlight);
    outline-offset: -2px;
  }
  .outline ul {
    margin: 0;
    padding: 0;
    list-style: none;
  }
  .outline ul ul {
    padding-inline-start: 14px;
    margin-inline-start: 3px;
    border-inline-start: 1px solid var(--edge);
  }
  .outline p {
    margin: 0;
    color: var(--ink-2);
    max-width: 66ch;
  }
  .outline .key {
    font-weight: 600;
  }
  .outline [aria-current] > .key,
  .outline .now {
    color: var(--now);
  }
  .outline .word,
  .outline .count,
  .outline .ways {
    color: var(--ink-3);
    font-size: var(--sb-text-s, 12px);
  }
  .outline .ways .can {
    color: var(--ink);
  }
  .outline .on,
  .outline .if {
    font-family: var(--sb-mono, monospace);
  }
  .waiting {
    display: grid;
    place-items: center;
    height: 100%;
    margin: 0;
    color: var(--ink-2);
  }
`

export const chartStyle = [palette, canvas, states, arrows, overview, outline]
