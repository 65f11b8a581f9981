/** The way from an agent to its actors. Beside the Actors page's own addresses, whose code an agent's page does not need. */

export function agentActorsPath(
  agentId: string,
  { kind, attention }: { readonly kind?: string; readonly attention?: true },
): string {
  const query = new URLSearchParams({ ...(kind === undefined ? {} : { kind }), agentId })
  if (attention) query.set('needs', 'attention')
  return `/actors?${query}`
}
