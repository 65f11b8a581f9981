/** The layout of the list of actors beside the one that is chosen. */
import { css } from 'lit'

export const actorsSheet = css`
  /* The grid is inside, not the host: alone on a page the host is the container that the queries below measure. */
  :host {
    display: block;
    height: 100%;
    min-height: 0;
    background: var(--sb-surface);
  }
  .page {
    display: grid;
    grid-template: minmax(0, 1fr) / 264px minmax(0, 1fr);
    height: 100%;
  }
  .list {
    display: grid;
    grid-template: auto auto minmax(0, 1fr) / minmax(0, 1fr);
    min-height: 0;
    background: var(--sb-sunken);
    border-inline-end: 1px solid var(--sb-border);
  }
  .list > header {
    display: grid;
    grid-template-columns: minmax(0, 1fr);
    gap: 8px;
    padding: 11px 12px;
    border-bottom: 1px solid var(--sb-border);
  }
  h1 {
    padding-inline-start: 4px;
    font-size: var(--sb-text-l);
    font-weight: 620;
    line-height: 28px;
  }
  .filters {
    justify-content: space-between;
  }
  select {
    flex: 0 1 auto;
    min-width: 0;
    width: auto;
    min-height: 26px;
    padding: 2px 6px;
    font-size: var(--sb-text-s);
  }
  .of-work {
    display: flex;
    justify-content: space-between;
    min-width: 0;
    line-height: 18px;
  }
  .whole {
    display: block;
    min-width: 0;
    padding: 4px;
    border-radius: var(--sb-radius-s);
    font-size: var(--sb-text-s);
    line-height: 18px;
  }
  .whole:hover {
    background: var(--sb-hover);
  }
  .standing {
    display: inline-flex;
    align-items: flex-start;
    gap: 6px;
  }
  .standing .icon {
    margin-top: 2px;
  }
  .machinery {
    display: grid;
    grid-template: auto minmax(0, 1fr) / minmax(0, 1fr);
    height: 100%;
  }
  .machinery nav {
    padding: 11px 16px;
    border-bottom: 1px solid var(--sb-border);
  }
  .machinery .button[aria-current] {
    background: var(--sb-selected);
    border-color: var(--sb-border-strong);
  }
  .machinery .back {
    display: none;
    margin-inline-start: -8px;
  }
  .arrived {
    justify-content: center;
    width: 100%;
    border-radius: 0;
    border-width: 0 0 1px;
    color: var(--sb-accent);
    background: var(--sb-accent-soft);
  }
  .rows {
    padding: 6px;
    min-height: 0;
  }
  .rows li {
    content-visibility: auto;
    contain-intrinsic-size: auto 62px;
  }
  .rows a {
    display: grid;
    grid-template-columns: 14px minmax(0, 1fr) auto;
    gap: 0 6px;
    align-items: baseline;
    padding: 8px;
    border-radius: var(--sb-radius-m);
  }
  .rows a:hover {
    background: var(--sb-hover);
  }
  .rows a[aria-current] {
    background: var(--sb-accent-soft);
  }
  .rows a:focus-visible {
    outline-offset: -2px;
  }
  .lamp {
    width: 7px;
    height: 7px;
    align-self: center;
    border-radius: 50%;
    border: 1.5px solid var(--sb-text-3);
  }
  .lamp.active {
    background: var(--sb-accent);
    border-color: var(--sb-accent);
  }
  .rows .icon {
    align-self: center;
    margin-inline-start: -3px;
    color: var(--sb-warn);
  }
  .id {
    font-weight: 500;
  }
  .rows time {
    font-size: var(--sb-text-xs);
    color: var(--sb-text-3);
  }
  .line {
    grid-column: 2 / -1;
    font-size: var(--sb-text-s);
    line-height: 18px;
    color: var(--sb-text-2);
  }
  .rows .standing .icon {
    margin-inline-start: 0;
  }
  .attention .line.state {
    color: var(--sb-warn);
    font-weight: 540;
  }
  .rows > .more {
    display: block;
    margin: 8px auto;
  }
  .chosen {
    min-width: 0;
    min-height: 0;
  }
  .chosen > h1 {
    display: none;
  }
  @container console (max-width: 1240px) {
    .page {
      grid-template-columns: 232px minmax(0, 1fr);
    }
  }
  @container console (max-width: 720px) {
    .page {
      grid-template-columns: minmax(0, 1fr);
    }
    /* The list and its heading are away; the page keeps one for those who hear it. */
    .page.one .chosen > h1 {
      display: block;
    }
    .machinery .back {
      display: inline-flex;
    }
    .page.one .list,
    .page:not(.one) .chosen {
      display: none;
    }
  }
`
