/** The way from an agent to its actors. Beside the Actors page's own addresses, whose code an agent's page does not need. */

export function agentActorsPath(
  agentId: string,
  { kind, attention, due }: { readonly kind?: string; readonly attention?: true; readonly due?: true },
): string {
  const query = new URLSearchParams({ ...(kind === undefined ? {} : { kind }), agentId })
  if (due) query.set('work', 'due')
  if (attention) query.set('needs', 'attention')
  return `/actors?${query}`
}
