/**
 * Draws a small picture in code, so that the demonstration needs no file beside the program. Owns just enough of PNG
 * [W3C PNG 3rd edition]: true colour, 8 bits, one IDAT, no filter.
 */
import { crc32, deflateSync } from 'node:zlib'

type Colour = readonly [red: number, green: number, blue: number]

const night: Colour = [24, 28, 38]
const rail: Colour = [150, 160, 178]
const green: Colour = [70, 190, 120]
const red: Colour = [226, 84, 76]
const width = 240
const height = 96

/** A track diagram: three platforms that join one line, each with its signal. */
export function trackDiagram(): Buffer {
  const rows = Array.from({ length: height }, (_, y) =>
    Buffer.concat([Buffer.from([0]), ...Array.from({ length: width }, (_, x) => Buffer.from(colourAt(x, y)))]),
  )
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const data = deflateSync(Buffer.concat(rows))
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', data), chunk('IEND', Buffer.alloc(0))])
}

const platforms = [24, 48, 72] as const
const middle = 48
const junction = 110

function colourAt(x: number, y: number): Colour {
  for (const [index, platform] of platforms.entries()) {
    if ((x - 196) ** 2 + (y - platform + 9) ** 2 < 16) return index === 1 ? green : red
    // Before the junction there is one line; after it each platform's own, reached over a diagonal.
    const reach = Math.min(1, Math.max(0, (x - junction) / 40))
    const track = middle + (platform - middle) * reach
    if (Math.abs(y - track) < 1.5 && x > 12 && x < 228) return rail
  }
  return night
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const check = Buffer.alloc(4)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}
