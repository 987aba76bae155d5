/** Cheap ingest requests of numbered events: a template whose ids, sessions and times are overwritten. */
import { ingestRequest } from '../support/load.ts'
import { classes, types, userAgent, vendors } from './engine-events.ts'

export const batchEvents = 100

const idHole = 'I'.repeat(24)
const sessionHole = 'S'.repeat(12)
const timeHole = '2026-01-01T00:00:00.000Z'

/** Event 0 of every hundredth batch has this vendor: 1 in 10,000. */
export const rareVendor = 'RareBot'
const rareEvery = 100

export interface Traffic {
  /** The request with events `batch * each` and the next ones. The same number returns the same events. */
  request(batch: number): Uint8Array
}

/** `total` events in chronological order until now, 20 per session. Later events have the current time. */
export function fixedTraffic(
  path: string,
  key: string,
  total: number,
  spanMs: number,
  batchSize = batchEvents,
): Traffic {
  const common = template(path, key, batchSize, false)
  const rare = template(path, key, batchSize, true)
  const startMs = Date.now() - spanMs
  return {
    request(batch) {
      const { bytes, ids, sessions, times } = batch % rareEvery === 0 ? rare : common
      const copy = Buffer.from(bytes)
      const first = batch * batchSize
      const atMs = first < total ? startMs + (first / total) * spanMs : Date.now()
      const time = Buffer.from(new Date(atMs).toISOString())
      for (let n = 0; n < batchSize; n++) {
        writeId(copy, ids[n]!, first + n)
        writeHex(copy, sessions[n]!, Math.floor((first + n) / 800) * 40 + (n % 40), 12)
        copy.set(time, times[n]!)
      }
      return copy
    },
  }
}

const digits = Buffer.from('0123456789abcdef')

/** Digit by digit, because building strings takes as long as the server needs to parse the request. */
function writeHex(bytes: Uint8Array, offset: number, n: number, width: number): void {
  for (let place = offset + width - 1; place >= offset; place--, n = Math.floor(n / 16))
    bytes[place] = digits[n % 16]!
}

/** Spread like a random id and unique, because multiplication by an odd number is a bijection. */
function writeId(bytes: Uint8Array, offset: number, n: number): void {
  const firstHash = Math.imul(n, 0x9e3779b1) >>> 0
  const two = Math.imul(firstHash ^ (firstHash >>> 15), 0x85ebca6b) >>> 0
  writeHex(bytes, offset, two, 8)
  writeHex(bytes, offset + 8, firstHash, 8)
  writeHex(bytes, offset + 16, n, 8)
}

function template(path: string, key: string, batchSize: number, isRare: boolean) {
  const events = Array.from({ length: batchSize }, (_, n) => eventText(n, isRare && n === 0))
  const bytes = Buffer.from(ingestRequest(path, key, `{"events":[${events.join(',')}]}`))
  return {
    bytes,
    ids: holes(bytes, idHole),
    sessions: holes(bytes, sessionHole),
    times: holes(bytes, timeHole),
  }
}

function holes(bytes: Buffer, hole: string): number[] {
  const offsets: number[] = []
  for (let offset = bytes.indexOf(hole); offset >= 0; offset = bytes.indexOf(hole, offset + 1))
    offsets.push(offset)
  return offsets
}

function eventText(n: number, isRare: boolean): string {
  const type = types[n % types.length]!
  return JSON.stringify({
    id: `trc_${idHole}`,
    siteId: 'shop-acme',
    sessionId: `ses_${sessionHole}`,
    occurredAt: timeHole,
    type,
    outcome: n % 11 === 0 ? 'blocked' : 'success',
    ...(type === 'tool.executed' ? { tool: `cart.${n % 30}` } : {}),
    durationMs: (n * 13) % 900,
    agent: {
      class: classes[(n >> 2) & 3],
      trust: 'detected',
      confidence: 0.93,
      vendor: isRare ? rareVendor : vendors[(n * 7) % 5],
      userAgent,
    },
    metadata: { page: `/products/${n % 50}`, protocol: 'web-bot-auth', subject: `user-${n}` },
  })
}
