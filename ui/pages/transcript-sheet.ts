/** How a transcript and its parts look. Columns stay narrow enough to read. */
import { css } from 'lit'

export const partsSheet = css`
  .file {
    display: flex;
    align-items: center;
    gap: 10px;
    min-width: 0;
  }
  .file > .icon {
    color: var(--sb-text-3);
  }
  .file .grow {
    display: grid;
  }
  .file .faint {
    font-size: var(--sb-text-s);
  }
  .wrap {
    overflow-wrap: anywhere;
  }
  .data {
    display: grid;
    grid-template-columns: minmax(0, 1fr);
    gap: 4px;
    overflow-wrap: anywhere;
    padding: 10px 12px;
    border-radius: var(--sb-radius-m);
    background: var(--sb-sunken);
    border: 1px solid var(--sb-border);
  }
`

export const transcriptSheet = [
  partsSheet,
  css`
    .message {
      display: flex;
      gap: 12px;
      padding: 10px 0;
    }
    .by {
      display: flex;
      flex-wrap: wrap;
      gap: 2px 8px;
      align-items: baseline;
    }
    .by b {
      min-width: 0;
      overflow-wrap: anywhere;
      font-weight: 620;
    }
    .by .num {
      font-size: var(--sb-text-s);
    }
    .by .chip {
      align-self: center;
    }
    .parts {
      display: grid;
      grid-template-columns: minmax(0, 1fr);
      gap: 8px;
      max-width: 68ch;
      padding-top: 2px;
    }
    .asks .parts {
      padding: 2px 0 2px 12px;
      margin-top: 4px;
      border-inline-start: 3px solid var(--sb-warn);
      font-size: 14px;
      line-height: 21px;
    }
    .pending .parts {
      color: var(--sb-text-2);
    }
    .made {
      display: grid;
      grid-template-columns: minmax(0, 1fr);
      gap: 10px;
      padding: 10px 0 10px 40px;
    }
    .artifact {
      max-width: 68ch;
    }
    .artifact header {
      gap: 11px;
      padding: 9px 10px 9px 12px;
    }
    .artifact header b {
      font-weight: 580;
    }
    .artifact header p {
      line-height: 18px;
    }
    .artifact header .faint {
      font-size: var(--sb-text-s);
    }
    .face {
      display: grid;
      place-items: center;
      width: 30px;
      height: 30px;
      border-radius: 7px;
      background: var(--sb-hover);
      color: var(--sb-text-2);
    }
    .about {
      padding: 0 14px 10px;
    }
    .preview {
      max-height: 320px;
      padding: 12px 14px;
      border-top: 1px solid var(--sb-border);
    }
    .preview:focus-visible {
      outline-offset: -2px;
    }
    .arriving {
      width: 6px;
      height: 6px;
      border-radius: 50%;
      background: currentColor;
      animation: signalbox-beat 1.1s var(--sb-ease) infinite alternate;
    }
    @keyframes signalbox-beat {
      to {
        opacity: 0.25;
      }
    }
    @container console (max-width: 720px) {
      .made {
        padding-inline-start: 0;
      }
    }
  `,
]
