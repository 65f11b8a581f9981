/**
 * Parts of messages and artifacts, as an agent may be allowed to show them: text as text, data as a tree, bytes as a download,
 * and a URL as its letters. Nothing here is markup, a link out, or loaded from where an agent says.
 */
import { html, nothing, type TemplateResult } from 'lit'
import { type Part, StoredBytes, type TaskArtifact } from '../../domain/task.ts'
import type { App } from '../app.ts'
import { plural } from '../format.ts'
import { icon, type Icon } from './icon.ts'
import { partsDrawings } from './parts-icons.ts'

const digestShape = /^[0-9a-f]{64}$/

/** Undefined when a raw part does not name bytes the way the server does. */
export function bytesOf(part: Part): StoredBytes | undefined {
  const parsed = part.kind === 'raw' ? StoredBytes.safeParse(part.value) : undefined
  return parsed?.success && digestShape.test(parsed.data.digest) ? parsed.data : undefined
}

export const textOf = (part: Part): string => (typeof part.value === 'string' ? part.value : '')

/** The address is made from the digest, never taken from the part. */
export const downloadLink = (app: App, part: Part, name: string): TemplateResult | typeof nothing => {
  const bytes = bytesOf(part)
  if (!bytes) return nothing
  return html`<a class="button small" href=${`${app.api.prefix}/api/artifacts/${bytes.digest}`} download=${name}
    >${icon('download', 13)}Download</a
  >`
}

function rawPart(app: App, part: Part): TemplateResult {
  const bytes = bytesOf(part)
  const name = part.filename ?? 'file'
  return html`<p class="file">
    ${icon('file', 16)}
    <span class="grow"
      ><bdi class="ell">${name}</bdi
      ><span class="faint num"
        >${part.mediaType}${bytes ? `, ${app.format.bytes(bytes.size)}` : ', not stored'}</span
      ></span
    >
    ${downloadLink(app, part, name)}
  </p>`
}

const urlPart = (part: Part): TemplateResult =>
  html`<p class="file">
    ${icon(partsDrawings['link-2'], 16)}
    <span class="grow"
      ><bdi class="mono wrap">${textOf(part)}</bdi
      ><span class="faint"
        >${part.filename ?? part.mediaType}. An address the agent gave; it was not opened.</span
      ></span
    >
  </p>`

/** Longer texts freeze a page for seconds when they are laid out whole; their beginning is shown first. */
const shownCharacters = 64 * 1024

const textPart = (text: string): TemplateResult =>
  text.length <= shownCharacters
    ? html`<p class="said">${text}</p>`
    : html`<p class="said">${text.slice(0, shownCharacters)}…</p>
        <p class="faint">The first ${shownCharacters / 1024} kB of ${Math.ceil(text.length / 1024)} kB are shown.</p>`

export function partView(app: App, part: Part): TemplateResult {
  if (part.kind === 'text') return textPart(textOf(part))
  if (part.kind === 'data') {
    return html`<div class="data">
      <p class="faint mono">${part.mediaType}</p>
      <signalbox-json .value=${part.value}></signalbox-json>
    </div>`
  }
  if (part.kind === 'raw') return rawPart(app, part)
  if (part.kind === 'url') return urlPart(part)
  // What is not shown says why in the place of its content.
  const notice = textOf(part)
  if (notice !== '')
    return html`<p class="faint">
      ${notice}${saysAll(part) ? nothing : html` <bdi>${part.filename ?? part.mediaType}</bdi> was not kept.`}
    </p>`
  return html`<p class="faint">A part without content (${part.mediaType}).</p>`
}

/** A sentence in the place of a part, or of all that come behind it, which are kept; else it stands for one file that is not. */
const saysAll = ({ filename, mediaType }: Part): boolean => filename === undefined && mediaType === 'text/plain'

/** Neighbouring text parts are one text: agents stream an artifact in many small pieces. */
export function joinText(parts: readonly Part[]): Part[] {
  const joined: Part[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (last?.kind === 'text' && part.kind === 'text' && last.mediaType === part.mediaType) {
      joined[joined.length - 1] = { ...last, value: textOf(last) + textOf(part) }
    } else joined.push(part)
  }
  return joined
}

export interface ArtifactFace {
  readonly icon: Icon
  readonly name: string
  readonly summary: string
}

/** How an artifact is named in a row: its kind and its size. */
export function faceOf(app: App, artifact: TaskArtifact): ArtifactFace {
  const parts = joinText(artifact.parts)
  const name = artifact.name ?? parts.find(({ filename }) => filename !== undefined)?.filename ?? artifact.artifactId
  const [only] = parts
  if (!only) return { icon: 'file', name, summary: artifact.complete ? 'Empty' : 'Nothing yet' }
  if (parts.length !== 1) return { icon: 'layers', name, summary: plural(parts.length, 'part') }
  if (only.kind === 'text') {
    return {
      icon: partsDrawings['file-text'],
      name,
      summary: `Text, ${app.format.bytes(new Blob([textOf(only)]).size)}`,
    }
  }
  if (only.kind === 'data') return { icon: partsDrawings['file-json'], name, summary: only.mediaType }
  if (only.kind === 'url') return { icon: partsDrawings['link-2'], name, summary: 'Address, not opened' }
  if (only.kind === 'unknown' && textOf(only) !== '')
    return { icon: 'file', name, summary: saysAll(only) ? 'Not shown' : `${only.mediaType}, not kept` }
  const bytes = bytesOf(only)
  return { icon: 'file', name, summary: `${only.mediaType}${bytes ? `, ${app.format.bytes(bytes.size)}` : ''}` }
}
