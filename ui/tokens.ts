/**
 * Design tokens: the console's documented custom properties, `--sb-*`. They are set once, on the outermost element of
 * ours on a page, and inherit through every shadow root below it; a host restyles us by setting them on that element.
 *
 * Contrast was measured for both themes: text tokens at least 4.6:1 on every ground, `--sb-field` at least 3:1.
 * Colours other than the accent always mean a state.
 */
import { css } from 'lit'

/**
 * `all: initial` keeps out what a host page's text would hand down; direction is kept on purpose. A host's own rule for `*`
 * matches our element, though, and beats `:host`: what would be inherited from there is held with `!important`, which an
 * outer rule without it cannot undo. Size and place stay the host's.
 */
export const outermost = css`
  :host {
    all: initial;
    display: block;
    color-scheme: light dark;
    container: console / inline-size;
    font: 400 var(--sb-text-m) / var(--sb-line) var(--sb-font) !important;
    color: var(--sb-text) !important;
    letter-spacing: normal !important;
    word-spacing: normal !important;
    text-align: start !important;
    text-indent: 0 !important;
    text-shadow: none !important;
    text-transform: none !important;
    white-space: normal !important;
  }
  :host([hidden]) {
    display: none;
  }
  :host([theme='light']) {
    color-scheme: light;
  }
  :host([theme='dark']) {
    color-scheme: dark;
  }
`

const scale = css`
  :host {
    --sb-font:
      Inter, 'Inter Variable', ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;
    --sb-mono: 'JetBrains Mono', ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace;
    --sb-text-xs: 11.5px;
    --sb-text-s: 12px;
    --sb-text-m: 13px;
    --sb-text-l: 15px;
    --sb-text-xl: 19px;
    --sb-line: 20px;
    --sb-1: 4px;
    --sb-2: 8px;
    --sb-3: 12px;
    --sb-4: 16px;
    --sb-5: 24px;
    --sb-6: 32px;
    --sb-radius-s: 5px;
    --sb-radius-m: 7px;
    --sb-radius-l: 10px;
    --sb-row: 56px;
    --sb-control: 30px;
    --sb-ease: cubic-bezier(0.2, 0, 0, 1);
    --sb-fast: 110ms;
    --sb-slow: 180ms;
  }
  :host([density='compact']) {
    --sb-row: 48px;
    --sb-control: 28px;
  }
`

const ground = css`
  :host {
    --sb-bg: light-dark(oklch(0.972 0.0035 250), oklch(0.172 0.006 260));
    --sb-surface: light-dark(oklch(1 0 0), oklch(0.208 0.007 260));
    --sb-raised: light-dark(oklch(1 0 0), oklch(0.245 0.008 260));
    --sb-sunken: light-dark(oklch(0.978 0.003 250), oklch(0.188 0.006 260));
    --sb-hover: light-dark(oklch(0.958 0.004 250), oklch(0.25 0.008 260));
    --sb-selected: light-dark(oklch(0.94 0.006 250), oklch(0.31 0.01 260));
    --sb-border: light-dark(oklch(0.912 0.005 250), oklch(0.298 0.008 260));
    --sb-border-strong: light-dark(oklch(0.845 0.008 250), oklch(0.385 0.01 260));
    --sb-field: light-dark(oklch(0.635 0.01 255), oklch(0.545 0.012 260));
    --sb-text: light-dark(oklch(0.245 0.012 260), oklch(0.935 0.004 250));
    --sb-text-2: light-dark(oklch(0.44 0.014 260), oklch(0.755 0.008 250));
    --sb-text-3: light-dark(oklch(0.515 0.014 260), oklch(0.69 0.01 250));
    --sb-shadow-1: 0 1px 2px light-dark(oklch(0.3 0.02 260 / 0.06), oklch(0 0 0 / 0.4));
    --sb-shadow-2:
      0 8px 28px light-dark(oklch(0.3 0.02 260 / 0.14), oklch(0 0 0 / 0.55)),
      0 1px 2px light-dark(oklch(0.3 0.02 260 / 0.08), oklch(0 0 0 / 0.5));
  }
`

const meaning = css`
  :host {
    --sb-accent: light-dark(oklch(0.5 0.155 259), oklch(0.76 0.115 254));
    --sb-accent-solid: light-dark(oklch(0.5 0.165 259), oklch(0.56 0.16 259));
    --sb-accent-solid-hover: light-dark(oklch(0.455 0.165 259), oklch(0.535 0.165 259));
    --sb-on-accent: oklch(1 0 0);
    --sb-accent-soft: light-dark(oklch(0.957 0.02 255), oklch(0.29 0.045 259));
    --sb-focus: light-dark(oklch(0.56 0.18 259), oklch(0.74 0.14 256));
    --sb-ok: light-dark(oklch(0.47 0.105 155), oklch(0.77 0.125 155));
    --sb-ok-soft: light-dark(oklch(0.957 0.03 155), oklch(0.275 0.042 158));
    --sb-warn: light-dark(oklch(0.495 0.105 66), oklch(0.815 0.125 80));
    --sb-warn-soft: light-dark(oklch(0.962 0.04 85), oklch(0.29 0.045 75));
    --sb-bad: light-dark(oklch(0.515 0.185 26), oklch(0.74 0.14 24));
    --sb-bad-soft: light-dark(oklch(0.96 0.022 22), oklch(0.285 0.06 24));
    --sb-bad-solid: light-dark(oklch(0.52 0.19 26), oklch(0.55 0.18 26));
    --sb-info: light-dark(oklch(0.485 0.11 235), oklch(0.77 0.1 230));
    --sb-info-soft: light-dark(oklch(0.957 0.022 235), oklch(0.28 0.04 235));
    --sb-auth: light-dark(oklch(0.49 0.14 305), oklch(0.78 0.11 308));
    --sb-auth-soft: light-dark(oklch(0.96 0.022 305), oklch(0.285 0.05 305));
  }
`

/** Everything the outermost element adopts, before any other sheet. */
export const tokens = [outermost, scale, ground, meaning]
