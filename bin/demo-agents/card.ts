/**
 * A demo agent's card, in its 1.0 shape. Owns what all of them have in common. Does not own what each can do.
 */
import type { NativeCard } from '../../a2a/server-card.ts'
import type { DemoAgent } from './turn.ts'

export function cardOf(agent: DemoAgent, base: string): NativeCard {
  return {
    name: agent.name,
    description: agent.description,
    version: '1.0.0',
    provider: { organization: 'Signalbox', url: 'https://signalbox.example' },
    supportedInterfaces: [
      { url: `${base}/a2a/jsonrpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${base}/a2a/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    ],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: agent.extensions.map((extension) => ({ ...extension, required: false })),
    },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: agent.outputModes,
    skills: agent.skills,
  }
}
