/**
 * Runs one test agent in a process of its own, so that a chaos test can kill the console, or the agent, and still read
 * the receipts: `node test/support/peers/standalone.ts --kind raw --receipts /tmp/receipts.jsonl`. Its first line on
 * stdout is the card's URL. It ends on SIGTERM, or when its stdin closes, so that it never outlives a killed test.
 */
import { parseArgs } from 'node:util'
import { startRawPeer } from './raw.ts'
import { startSdkPeer } from './sdk.ts'

const { values } = parseArgs({
  options: {
    kind: { type: 'string', default: 'sdk' },
    version: { type: 'string', default: '1.0' },
    binding: { type: 'string', default: 'JSONRPC' },
    receipts: { type: 'string' },
  },
})

const binding = values.binding === 'HTTP+JSON' ? 'HTTP+JSON' : 'JSONRPC'
const version = values.version === '0.3' ? '0.3' : '1.0'
const file = values.receipts === undefined ? {} : { receiptFile: values.receipts }
const peer = await (values.kind === 'raw'
  ? startRawPeer({ binding, ...file })
  : startSdkPeer({ version, binding, ...file }))

process.stdout.write(`${peer.cardUrl}\n`)
const end = async (): Promise<void> => {
  await peer.close()
  process.exit(0)
}
process.once('SIGTERM', () => void end())
process.stdin.once('end', () => void end()).resume()
