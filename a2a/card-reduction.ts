/**
 * What somebody sees of a card who holds only some of the agent's skills: who the agent is, how it is spoken with, and those
 * skills. Rebuilt from what was understood, not cut out of what was served, so that a field that nobody here knows cannot tell of
 * the rest. Addresses, security schemes, signatures and extensions' parameters are left out. Does not own who holds what.
 */
import type { AgentCard } from './card.ts'
import type { ComplianceReport } from './compliance.ts'

/** In the words of a 1.0 card. It cannot be used to reach the agent. */
export function reducedCard(card: AgentCard, skillIds: ReadonlySet<string>) {
  const { streaming, pushNotifications, extensions } = card.capabilities
  return {
    name: card.name,
    description: card.description,
    version: card.version,
    ...(card.provider ? { provider: card.provider } : {}),
    ...(card.iconUrl === undefined ? {} : { iconUrl: card.iconUrl }),
    ...(card.documentationUrl === undefined ? {} : { documentationUrl: card.documentationUrl }),
    capabilities: {
      streaming,
      pushNotifications,
      extensions: extensions.map(({ uri, description, required }) => ({
        uri,
        ...(description === undefined ? {} : { description }),
        ...(required === undefined ? {} : { required }),
      })),
    },
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.filter(({ id }) => skillIds.has(id)),
  }
}

/** A report of the whole card names places in it; without them it says how the card fares, and nothing of what is in it. */
export const reducedReport = ({ version, score, counts }: Pick<ComplianceReport, 'version' | 'score' | 'counts'>) => ({
  version,
  score,
  counts,
  issues: [],
  passed: [],
})
