/** A proxy that ends TLS before a console, as a deployment has one: it hands requests on as they are, by plain HTTP. */
import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface TlsFront {
  readonly port: number
  close(): Promise<void>
}

export async function startTlsFront(tls: { key: string; certificate: string }, url: string): Promise<TlsFront> {
  const server = createServer({ key: tls.key, cert: tls.certificate }, (incoming, outgoing) => {
    const { method, headers } = incoming
    const onward = request(new URL(incoming.url ?? '/', url), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(outgoing)
    })
    // A console that went away is a cut line to the browser, as it is through any proxy.
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
