/**
 * Which methods an address answers. A request by another one is told so, with the list [RFC 9110 §15.5.6], and not that nothing is
 * there. Does not own what a method does, or who may use it: the list is in the API's document, so it is no secret.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'

interface Address {
  readonly path: RegExp
  readonly methods: Set<string>
}

/** As the router reads them: `:name` is one segment, `*` the rest. */
const patternOf = (url: string): RegExp => {
  const literal = url.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(`^${literal.replaceAll(/:\w+/g, '[^/]+').replaceAll('*', '.*')}$`)
}

/**
 * To be called before any route is declared. What it returns names the methods of a request's address, in alphabetical order;
 * empty where nothing is there, or where the method is one of them and what was asked for was not found all the same.
 */
export function methodsByAddress(app: FastifyInstance): (request: FastifyRequest) => readonly string[] {
  const addresses = new Map<string, Address>()
  app.addHook('onRoute', ({ url, method }) => {
    const address = addresses.get(url) ?? { path: patternOf(url), methods: new Set() }
    for (const each of [method].flat()) address.methods.add(each)
    addresses.set(url, address)
  })
  return ({ method, url }) => {
    const [path = ''] = url.split('?', 1)
    const found = [...addresses.values()].filter((address) => address.path.test(path))
    const methods = [...new Set(found.flatMap((address) => [...address.methods]))].toSorted()
    return methods.includes(method) ? [] : methods
  }
}
