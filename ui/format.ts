/** Times, sizes and counts in the reader's own language and zone; `Intl` only. Owns no wording beyond units. */
import { html, type TemplateResult } from 'lit'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

export class Format {
  readonly #full: Intl.DateTimeFormat
  readonly #clock: Intl.DateTimeFormat
  readonly #minute: Intl.DateTimeFormat
  readonly #day: Intl.DateTimeFormat
  readonly #count: Intl.NumberFormat
  readonly #bytes: Intl.NumberFormat

  /** `locale` is a BCP 47 tag; undefined is the browser's own. */
  constructor(locale: string | undefined) {
    this.#full = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' })
    this.#clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
    this.#minute = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' })
    this.#day = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' })
    this.#count = new Intl.NumberFormat(locale)
    this.#bytes = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 })
  }

  /** How long ago, short: "now", "12m", "3h", "5d", then the date. The unit is chosen of what is shown: 59.6 minutes are "1h". */
  ago(iso: string, nowMs = Date.now()): string {
    const passedMs = nowMs - Date.parse(iso)
    if (passedMs < 50_000) return 'now'
    const minutes = Math.round(passedMs / minuteMs)
    if (minutes < 60) return `${minutes}m`
    const hours = Math.round(passedMs / hourMs)
    if (hours < 24) return `${hours}h`
    if (passedMs < 7 * dayMs) return `${Math.round(passedMs / dayMs)}d`
    return this.#day.format(new Date(iso))
  }

  /** Date and time to the second, local. */
  full(iso: string): string {
    return this.#full.format(new Date(iso))
  }

  /** Time of day to the second; the date too when it is not today's. */
  clock(iso: string): string {
    return this.#dated(iso, this.#clock)
  }

  /** "840 ms", "4.8 s", "3 min 12 s", "2 h 5 min". */
  duration(ms: number): string {
    if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`
    if (Math.round(ms / 100) < 600) return `${this.#bytes.format(ms / 1000)} s`
    const seconds = Math.round(ms / 1000)
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    const minutes = Math.round(ms / minuteMs)
    return `${this.count(Math.floor(minutes / 60))} h ${minutes % 60} min`
  }

  /** Decimal units, as file managers and the specification's limits use them. */
  bytes(size: number): string {
    if (size < 1000) return `${size} B`
    if (size < 1_000_000) return `${this.#bytes.format(size / 1000)} kB`
    return `${this.#bytes.format(size / 1_000_000)} MB`
  }

  count(value: number): string {
    return this.#count.format(value)
  }

  /** A `<time>` that reads short and tells all when pointed at. */
  when(iso: string): TemplateResult {
    return html`<time datetime=${iso} title=${this.full(iso)}>${this.ago(iso)}</time>`
  }

  /** Time of day to the second, for what is compared with something beside it. */
  at(iso: string): TemplateResult {
    return html`<time datetime=${iso} title=${this.full(iso)}>${this.clock(iso)}</time>`
  }

  /** Time of day to the minute, for what is read rather than compared. */
  atMinute(iso: string): TemplateResult {
    return html`<time datetime=${iso} title=${this.full(iso)}>${this.#dated(iso, this.#minute)}</time>`
  }

  #dated(iso: string, time: Intl.DateTimeFormat): string {
    const at = new Date(iso)
    const today = at.toDateString() === new Date().toDateString()
    return today ? time.format(at) : `${this.#day.format(at)}, ${time.format(at)}`
  }
}

/** "1 skill", "3 skills". */
export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/** Up to two initials of a name, for a round mark. */
export const initials = (name: string): string =>
  name
    .split(/\s+/)
    .map((word) => String.fromCodePoint(word.codePointAt(0) ?? 32))
    .slice(0, 2)
    .join('')
    .toUpperCase()
