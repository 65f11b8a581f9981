/**
 * What keeps a card from the specification, for people who publish agents. Owns the report: which checks apply to which version, the
 * score, the places. The checks themselves are tables (compliance-checks.ts, compliance-v1.ts, compliance-v0_3.ts). Does not
 * own whether a card is usable (card.ts), which is far more tolerant.
 */
import { cardChecks } from './compliance-checks.ts'
import type { Check, Severity } from './compliance-checks.ts'
import { checksV03 } from './compliance-v0_3.ts'
import { checksV1 } from './compliance-v1.ts'
import { field, isObject } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'

export interface ComplianceIssue {
  /** Names the check, for example `skill.tags`. */
  readonly id: string
  readonly severity: Severity
  /** JSON pointer [RFC 6901] into the card; empty for the card itself. */
  readonly path: string
  /** One sentence. */
  readonly message: string
  /** Section of the specification of that version. */
  readonly spec?: string
}

/** The same shape as domain/agent.ts. score = max(0, 100 − 18·errors − 6·warnings − 2·infos). */
export interface ComplianceReport {
  readonly version: '1.0' | '0.3' | 'unknown'
  readonly score: number
  readonly counts: { readonly error: number; readonly warning: number; readonly info: number }
  readonly issues: ComplianceIssue[]
  /** Pointers to places that were checked and found in order, each once. */
  readonly passed: string[]
}

/** A card with more faults than this is told the first ones; its score is 0 long before. */
const issueLimit = 200
const passedLimit = 2_000
const textLimit = 512

const severities: readonly Severity[] = ['error', 'warning', 'info']

/** Judges a card. Takes any JSON value and never throws. */
export function complianceReport(json: unknown): ComplianceReport {
  if (!isObject(json)) {
    const message = 'An Agent Card is a JSON object.'
    return reportOf('unknown', [{ id: 'card.object', severity: 'error', path: '', message, spec: '4.4.1' }], new Set())
  }
  const version = versionOf(json)
  const checks = [...cardChecks, ...(version === '0.3' ? checksV03 : checksV1)]
  const issues: ComplianceIssue[] = []
  const seen = new Set<string>()
  for (const check of checks) inspect(check, json, version, issues, seen)
  return reportOf(version, issues, seen)
}

/** `supportedInterfaces` makes a card 1.0, even beside the fields of 0.3; a main URL or a version alone make it 0.3. */
function versionOf(card: JsonObject): ComplianceReport['version'] {
  if (field(card, 'supportedInterfaces') !== undefined) return '1.0'
  const said = field(card, 'protocolVersion')
  if (typeof said === 'string' && /^0\.[23](\.|$)/.test(said)) return '0.3'
  return field(card, 'url') !== undefined || field(card, 'preferredTransport') !== undefined ? '0.3' : 'unknown'
}

function inspect(
  check: Check,
  card: JsonObject,
  version: ComplianceReport['version'],
  issues: ComplianceIssue[],
  seen: Set<string>,
): void {
  for (const { path: place, fault } of check.look(card)) {
    // Places and sentences repeat names that the card's author chose, at any length.
    const path = place.slice(0, textLimit)
    if (seen.size < passedLimit) seen.add(path)
    if (fault === null || issues.length >= issueLimit) continue
    const spec = version === '0.3' ? (check.specV03 ?? check.spec) : check.spec
    issues.push({
      id: check.id,
      severity: check.severity,
      path,
      message: fault.slice(0, textLimit),
      ...(spec === undefined ? {} : { spec }),
    })
  }
}

function reportOf(
  version: ComplianceReport['version'],
  issues: readonly ComplianceIssue[],
  seen: ReadonlySet<string>,
): ComplianceReport {
  const counts = { error: 0, warning: 0, info: 0 }
  for (const issue of issues) counts[issue.severity] += 1
  const faulty = new Set(issues.map((issue) => issue.path))
  return {
    version,
    score: Math.max(0, 100 - 18 * counts.error - 6 * counts.warning - 2 * counts.info),
    counts,
    // Worst first, and in the order of the checks within a severity.
    issues: severities.flatMap((severity) => issues.filter((issue) => issue.severity === severity)),
    passed: [...seen].filter((path) => !faulty.has(path)),
  }
}
