/**
 * The sheet every shadow root adopts: native controls made ours, and the few classes that views share.
 * One CSSStyleSheet object however many elements adopt it. Layout belongs to the views.
 */
import { css } from 'lit'
import { buttons, fields } from './controls.ts'

const text = css`
  :host {
    box-sizing: border-box;
    display: block;
    font: 400 var(--sb-text-m) / var(--sb-line) var(--sb-font);
    color: var(--sb-text);
    -webkit-font-smoothing: antialiased;
  }
  *,
  *::before,
  *::after {
    box-sizing: border-box;
  }
  h1,
  h2,
  h3,
  p,
  ul,
  ol,
  dl,
  dd,
  figure,
  pre {
    margin: 0;
    padding: 0;
  }
  h1,
  h2,
  h3 {
    font: inherit;
  }
  ul,
  ol {
    list-style: none;
  }
  a {
    color: inherit;
    text-decoration: none;
  }
  a.link {
    color: var(--sb-accent);
  }
  a.link:hover {
    text-decoration: underline;
  }
  /* A line of its own, and no word in a sentence: as high as a finger's target has to be [WCAG 2.2, 2.5.8]. */
  .grow > a.link {
    display: inline-block;
    line-height: 24px;
  }
  .icon {
    flex: none;
    display: block;
  }
  .muted {
    color: var(--sb-text-2);
  }
  .faint {
    color: var(--sb-text-3);
  }
  .mono {
    font-family: var(--sb-mono);
    font-size: var(--sb-text-s);
    font-variant-ligatures: none;
  }
  .num {
    font-variant-numeric: tabular-nums;
  }
  .row {
    display: flex;
    align-items: center;
    gap: var(--sb-2);
  }
  .grow {
    flex: 1;
    min-width: 0;
  }
  .ell {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .sr {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
  .h-xl {
    font-size: var(--sb-text-xl);
    line-height: 26px;
    font-weight: 620;
    letter-spacing: -0.012em;
    text-wrap: balance;
    overflow-wrap: anywhere;
  }
  .label {
    font-size: var(--sb-text-s);
    font-weight: 560;
    color: var(--sb-text-2);
  }
  /* What an agent wrote: its line breaks kept, its longest word broken, its direction its own. */
  .said {
    white-space: pre-wrap;
    overflow-wrap: anywhere;
    unicode-bidi: plaintext;
  }
`

const focus = css`
  :focus {
    outline: none;
  }
  :focus-visible {
    outline: 2px solid var(--sb-focus);
    outline-offset: 1px;
    border-radius: var(--sb-radius-s);
  }
`

const pieces = css`
  .chip {
    display: inline-flex;
    align-items: center;
    gap: 5px;
    height: 20px;
    padding: 0 7px;
    border-radius: 999px;
    font-size: var(--sb-text-s);
    font-weight: 520;
    line-height: 1;
    white-space: nowrap;
    color: var(--sb-text-2);
    background: var(--sb-hover);
  }
  .chip.line {
    background: transparent;
    border: 1px solid var(--sb-border);
  }
  .tone-ok {
    color: var(--sb-ok);
  }
  .tone-warn {
    color: var(--sb-warn);
  }
  .tone-bad {
    color: var(--sb-bad);
  }
  .tone-info {
    color: var(--sb-info);
  }
  .tone-auth {
    color: var(--sb-auth);
  }
  .tone-accent {
    color: var(--sb-accent);
  }
  .chip.tone-ok {
    background: var(--sb-ok-soft);
  }
  .chip.tone-warn {
    background: var(--sb-warn-soft);
  }
  .chip.tone-bad {
    background: var(--sb-bad-soft);
  }
  .chip.tone-info {
    background: var(--sb-info-soft);
  }
  .chip.tone-auth {
    background: var(--sb-auth-soft);
  }
  .chip.tone-accent {
    background: var(--sb-accent-soft);
  }
  .avatar {
    display: grid;
    place-items: center;
    flex: none;
    width: 28px;
    height: 28px;
    border-radius: 50%;
    font-size: 10.5px;
    font-weight: 650;
    background: light-dark(oklch(0.9 0.03 60), oklch(0.38 0.05 60));
  }
  .avatar.agent {
    border-radius: 8px;
    color: var(--sb-text-2);
    background: var(--sb-hover);
  }
  .card {
    background: var(--sb-surface);
    border: 1px solid var(--sb-border);
    border-radius: var(--sb-radius-l);
    overflow: clip;
  }
  .notice {
    display: flex;
    gap: 10px;
    padding: 10px 12px;
    border-radius: var(--sb-radius-m);
    background: var(--sb-hover);
  }
  .notice > .icon {
    margin-top: 2px;
  }
  .notice.warn {
    background: var(--sb-warn-soft);
  }
  .notice.warn > .icon,
  .notice.warn b {
    color: var(--sb-warn);
  }
  .notice.bad {
    background: var(--sb-bad-soft);
  }
  .notice.bad > .icon,
  .notice.bad b {
    color: var(--sb-bad);
  }
  .empty {
    display: grid;
    place-items: center;
    align-content: center;
    gap: 6px;
    height: 100%;
    padding: 40px;
    text-align: center;
    color: var(--sb-text-2);
  }
  .empty > .icon {
    color: var(--sb-text-3);
    margin-bottom: 6px;
  }
  .empty b {
    color: var(--sb-text);
    font-weight: 600;
    font-size: var(--sb-text-l);
  }
  .empty p {
    max-width: 44ch;
    text-wrap: balance;
  }
  .empty .row {
    margin-top: 10px;
  }
  .scroll {
    overflow: auto;
    scrollbar-width: thin;
    scrollbar-color: var(--sb-border-strong) transparent;
  }
  /* Bars of true height, shown only when the answer takes longer than 200 ms: a flash of them is worse than nothing. */
  .skeleton,
  .late {
    visibility: hidden;
    animation: signalbox-late 1ms 200ms forwards;
  }
  .skeleton i {
    display: block;
    height: 10px;
    border-radius: 5px;
    background: var(--sb-hover);
  }
  @keyframes signalbox-late {
    to {
      visibility: visible;
    }
  }
`

const layers = css`
  dialog {
    padding: 0;
    border: 1px solid var(--sb-border);
    border-radius: 12px;
    color: var(--sb-text);
    background: var(--sb-raised);
    box-shadow: var(--sb-shadow-2);
    max-width: calc(100vw - 32px);
    max-height: calc(100dvh - 48px);
  }
  dialog::backdrop {
    background: oklch(0.2 0.02 260 / 0.36);
  }
  [popover] {
    margin: 0;
    inset: auto;
    border: 1px solid var(--sb-border);
    border-radius: var(--sb-radius-l);
    background: var(--sb-raised);
    color: var(--sb-text);
    padding: 5px;
    box-shadow: var(--sb-shadow-2);
    min-width: 190px;
  }
  @media (prefers-reduced-motion: reduce) {
    *:not(.skeleton, .late),
    *::before,
    *::after {
      animation: none !important;
      transition: none !important;
    }
  }
  @media (forced-colors: active) {
    .chip,
    button,
    .card,
    .notice {
      border: 1px solid CanvasText;
    }
    [aria-current],
    [aria-selected='true'],
    [aria-pressed='true'] {
      outline: 2px solid Highlight;
      outline-offset: -2px;
    }
  }
`

export const sheet = [text, focus, buttons, fields, pieces, layers]
