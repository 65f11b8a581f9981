/** The frame's layout: navigation, banners, main. Breakpoints are the element's own width, not the window's. */
import { css } from 'lit'

const navigation = css`
  nav {
    display: flex;
    flex-direction: column;
    gap: 2px;
    padding: 12px 8px 10px;
    min-height: 0;
    border-inline-end: 1px solid var(--sb-border);
  }
  .skip {
    position: absolute;
    inset-inline-start: 8px;
    top: -48px;
    z-index: 9;
  }
  .skip:focus {
    top: 8px;
  }
  .brand {
    display: flex;
    align-items: center;
    gap: 9px;
    padding: 2px 8px 12px;
    font-size: 14px;
    font-weight: 640;
    letter-spacing: -0.012em;
  }
  .sign {
    display: grid;
    place-items: center;
    width: 22px;
    height: 22px;
    border-radius: 6px;
    color: var(--sb-on-accent);
    background: var(--sb-accent-solid);
  }
  .find {
    justify-content: flex-start;
    width: 100%;
    margin-bottom: 10px;
    color: var(--sb-text-3);
    font-weight: 420;
    background: var(--sb-surface);
    border-color: var(--sb-border);
  }
  .find span {
    flex: 1;
    text-align: start;
  }
  nav ul {
    display: grid;
    gap: 1px;
  }
  nav a {
    display: flex;
    align-items: center;
    gap: 9px;
    height: 30px;
    padding: 0 9px;
    border-radius: var(--sb-radius-m);
    color: var(--sb-text-2);
    font-weight: 500;
  }
  nav a:hover {
    background: var(--sb-hover);
    color: var(--sb-text);
  }
  nav a[aria-current] {
    background: var(--sb-selected);
    color: var(--sb-text);
    font-weight: 580;
  }
  .section {
    padding: 14px 9px 4px;
    font-size: var(--sb-text-xs);
    font-weight: 540;
    color: var(--sb-text-3);
  }
  .live {
    display: flex;
    align-items: center;
    gap: 9px;
    padding: 0 12px 6px;
    font-size: var(--sb-text-s);
    color: var(--sb-text-2);
  }
  .lamp {
    width: 7px;
    height: 7px;
    border-radius: 50%;
    background: var(--sb-text-3);
  }
  .lamp.live {
    padding: 0;
    background: var(--sb-ok);
  }
  .lamp.reconnecting,
  .lamp.no-database {
    background: var(--sb-warn);
  }
  .lamp.offline,
  .lamp.signed-out {
    background: var(--sb-bad);
  }
  .me {
    display: flex;
    align-items: center;
    gap: 9px;
    min-height: 36px;
    padding: 0 4px 0 0;
  }
  .me > :first-child {
    flex: 1;
    min-width: 0;
  }
`

export const consoleSheet = [
  navigation,
  css`
    :host {
      height: 100%;
      min-height: 0;
      background: var(--sb-bg);
      position: relative;
      overflow: hidden;
    }
    .shell {
      display: grid;
      grid-template-columns: 208px minmax(0, 1fr);
      height: 100%;
      min-height: 0;
    }
    .stage {
      display: flex;
      flex-direction: column;
      min-width: 0;
      min-height: 0;
      background: var(--sb-surface);
    }
    main {
      flex: 1;
      min-height: 0;
      overflow: hidden;
    }
    main:focus-visible {
      outline: none;
    }
    main > * {
      height: 100%;
    }
    main.alone {
      height: 100%;
    }
    .banner {
      display: flex;
      align-items: center;
      gap: 10px;
      min-height: 40px;
      padding: 6px 16px;
      border-bottom: 1px solid var(--sb-border);
    }
    .banner.warn {
      color: var(--sb-warn);
      background: var(--sb-warn-soft);
    }
    .banner.bad {
      color: var(--sb-bad);
      background: var(--sb-bad-soft);
    }
    @container console (max-width: 1080px) {
      .shell {
        grid-template-columns: 52px minmax(0, 1fr);
      }
      nav .t,
      nav .section,
      .live .word {
        position: absolute;
        width: 1px;
        height: 1px;
        overflow: hidden;
        clip-path: inset(50%);
      }
      nav a,
      .me,
      .find,
      .brand {
        justify-content: center;
        padding-inline: 0;
      }
      .live {
        justify-content: center;
        padding: 0 0 8px;
      }
      .me {
        flex-direction: column;
        height: auto;
        padding: 0;
        gap: 6px;
      }
    }
  `,
]
