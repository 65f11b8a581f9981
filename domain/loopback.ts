/**
 * Which host names only this computer can reach: asked by the launcher's options, by the configuration, and by doors that
 * only this computer may use.
 * Not the network policy for agents, which judges resolved addresses (actors/outbound/addresses.ts).
 */

/** The whole of 127.0.0.0/8 is loopback [RFC 5735]; an IPv6 literal may come in brackets, as URLs write it. */
export const isLoopbackHost = (host: string): boolean =>
  /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(host) || ['localhost', '::1', '[::1]'].includes(host)
