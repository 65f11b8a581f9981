/** Two cards without fault, one per version, and the same security in the shape of each. */
export const card10 = {
  name: 'A',
  description: 'Does things.',
  version: '1.2.3',
  provider: { organization: 'O', url: 'https://o.example' },
  supportedInterfaces: [
    { url: 'https://h/a2a/jsonrpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'acme' },
    { url: 'https://h/a2a/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  ],
  capabilities: {
    streaming: true,
    pushNotifications: false,
    extendedAgentCard: true,
    extensions: [{ uri: 'https://signalbox.example/console/skill-routing/v1', required: false }],
  },
  securitySchemes: {
    key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } },
    http: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } },
    oauth: {
      oauth2SecurityScheme: {
        flows: { clientCredentials: { tokenUrl: 'https://o/token', scopes: { read: 'Reading' } } },
      },
    },
    oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://o/.well-known/openid-configuration' } },
    mtls: { mtlsSecurityScheme: {} },
  },
  securityRequirements: [{ schemes: { http: { list: [] } } }, { schemes: { oauth: { list: ['read'] } } }],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain', 'application/json'],
  skills: [{ id: 's', name: 'S', description: 'Does it.', tags: ['t'], examples: ['Do it.'] }],
}

export const card03 = {
  name: 'A',
  description: 'Does things.',
  version: '1.2.3',
  protocolVersion: '0.3.0',
  url: 'https://h/rest',
  preferredTransport: 'HTTP+JSON',
  additionalInterfaces: [
    { url: 'https://h/rest', transport: 'HTTP+JSON' },
    { url: 'https://h/rpc', transport: 'JSONRPC' },
  ],
  capabilities: { streaming: false, stateTransitionHistory: true },
  supportsAuthenticatedExtendedCard: true,
  securitySchemes: {
    key: { type: 'apiKey', in: 'header', name: 'X-Key' },
    http: { type: 'http', scheme: 'Bearer', bearerFormat: 'JWT' },
    oauth: {
      type: 'oauth2',
      flows: { clientCredentials: { tokenUrl: 'https://o/token', scopes: { read: 'Reading' } } },
    },
    oidc: { type: 'openIdConnect', openIdConnectUrl: 'https://o/.well-known/openid-configuration' },
    mtls: { type: 'mutualTLS' },
  },
  security: [{ http: [] }, { oauth: ['read'] }],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 's', name: 'S', description: 'Does it.', tags: ['t'], examples: ['Do it.'] }],
}
