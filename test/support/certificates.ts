/** Certificates for a test: an authority that nobody trusts by itself, and what it signs for loopback names and for clients. */
import { generate, type SelfsignedOptions } from 'selfsigned'

export interface KeyPair {
  readonly key: string
  readonly cert: string
}

export interface Authority {
  /** PEM of its own certificate. */
  readonly ca: string
  /** For a server at `localhost` and 127.0.0.1. */
  server(): Promise<KeyPair>
  client(name: string): Promise<KeyPair>
}

const dayMs = 86_400_000
const common = (): SelfsignedOptions => ({
  keyType: 'ec',
  algorithm: 'sha256',
  notAfterDate: new Date(Date.now() + dayMs),
})
const named = (value: string) => [{ name: 'commonName', value }]

export async function openAuthority(name = 'Test authority'): Promise<Authority> {
  const root = await generate(named(name), {
    ...common(),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  })
  const ca = { key: root.private, cert: root.cert }
  const issue = async (subject: string, extensions: NonNullable<SelfsignedOptions['extensions']>): Promise<KeyPair> => {
    const leaf = await generate(named(subject), {
      ...common(),
      ca,
      extensions: [
        { name: 'basicConstraints', cA: false },
        { name: 'keyUsage', digitalSignature: true },
        ...extensions,
      ],
    })
    return { key: leaf.private, cert: leaf.cert }
  }
  return {
    ca: root.cert,
    server: () =>
      issue('localhost', [
        { name: 'extKeyUsage', serverAuth: true },
        {
          name: 'subjectAltName',
          altNames: [
            { type: 2, value: 'localhost' },
            { type: 7, ip: '127.0.0.1' },
          ],
        },
      ]),
    client: (subject) => issue(subject, [{ name: 'extKeyUsage', clientAuth: true }]),
  }
}
