/**
 * A registered agent and what its card said. Owns the URL rules and the record's shape; the card itself is a2a/card.ts.
 */
import * as z from 'zod/mini'

export const cardUrlLimit = 1024

export const Trust = z.enum(['unsigned', 'verified', 'untrusted', 'invalid'])
export type Trust = z.infer<typeof Trust>

/** Why a card's trust is what it is. `explanation` is ours; the key ids of `namedKeys` are the agent's own words. */
export const CardSigning = z.object({
  explanation: z.string(),
  /** The pinned key that verified, or the one that was named and did not. */
  keyId: z.optional(z.string()),
  /** Key ids that the card's signatures name, at most 16. */
  namedKeys: z.array(z.string()),
  /** Fields of a verified card that its signature leaves out, at most 32: they are not read. */
  ignoredFields: z.optional(z.array(z.string())),
})
export type CardSigning = z.infer<typeof CardSigning>

export const AgentSource = z.enum(['env', 'managed'])
export type AgentSource = z.infer<typeof AgentSource>

/** What keeps a card from the specification, worst first. score = max(0, 100 − 18·errors − 6·warnings − 2·infos). */
export const ComplianceReport = z.object({
  version: z.enum(['1.0', '0.3', 'unknown']),
  score: z.number(),
  counts: z.object({ error: z.number(), warning: z.number(), info: z.number() }),
  issues: z.array(
    z.object({
      id: z.string(),
      severity: z.enum(['error', 'warning', 'info']),
      path: z.string(),
      message: z.string(),
      spec: z.optional(z.string()),
    }),
  ),
  passed: z.array(z.string()),
})
export type ComplianceReport = z.infer<typeof ComplianceReport>

const registered = { id: z.string(), cardUrl: z.string(), source: AgentSource }

/** The answer to a registration: nothing was fetched yet. */
export const RegisteredAgent = z.object(registered)
export type RegisteredAgent = z.infer<typeof RegisteredAgent>

export const AgentSkill = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
  examples: z.optional(z.array(z.string())),
})

/** Beyond the specification: the skills of an agent that whoever asks may send to. Null: anything, also without a skill. */
export const OperableSkills = z.nullable(z.array(z.string()))

/** A row of `GET /api/agents`: card fields when discovery succeeded, else `error`, beside the name where an earlier card told it. */
export const Agent = z.object({
  ...registered,
  name: z.optional(z.string()),
  description: z.optional(z.string()),
  skills: z.optional(z.array(AgentSkill)),
  card: z.optional(z.unknown()),
  trust: z.optional(Trust),
  /** Beyond the specification. */
  signing: z.optional(CardSigning),
  report: z.optional(ComplianceReport),
  error: z.optional(z.string()),
  operableSkills: OperableSkills,
})
export type Agent = z.infer<typeof Agent>

export type CardUrlFault = 'scheme' | 'decorated' | 'length'

/** Checks a card URL by the specification's rules and returns its normal form, or what is wrong with it. */
export function parseCardUrl(value: string): { url: string } | { fault: CardUrlFault } {
  if (value.length > cardUrlLimit) return { fault: 'length' }
  if (!URL.canParse(value)) return { fault: 'scheme' }
  const url = new URL(value)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return { fault: 'scheme' }
  if (url.username || url.password || url.search || url.hash || /[?#]/.test(value)) return { fault: 'decorated' }
  if (url.href.length > cardUrlLimit) return { fault: 'length' }
  return { url: url.href }
}
