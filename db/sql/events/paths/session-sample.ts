/** The events of one in sixteen sessions of a sealed segment, from which Detect reads the trust that sessions reach. */
import type { Database } from '../../database.ts'
import type { OpenBlock } from '../blocks/block-table.ts'
import { hashSpan, member, trustHeights } from '../blocks/fields.ts'
import { inflateColumns, openColumns, packSealed } from '../blocks/number-columns.ts'

/** Of sessions, by their hash: whoever sends them cannot choose it. */
export const sampledOneIn = 16

export function isSampled(sessionCode: number, oneIn: number): boolean {
  return sessionCode % hashSpan < hashSpan / oneIn
}

/** A row per event: what `readTrustReached` needs of it. */
const columns = ['session', 'at', 'type', 'siteId', 'height'] as const
export type SampledEvents = { [name in (typeof columns)[number]]: Float64Array } & { rows: number }

/** The most that the format holds. A segment with more sampled events stores none, and its blocks are read. */
const rowsMax = 0xffff

/** The height of a row's trust. */
export function trustHeight(
  heightOf: ReturnType<typeof trustHeights>,
  block: OpenBlock,
  row: number,
): number {
  return heightOf(block.code(member.trust, row), () => block.hashedText(member.trust, row))
}

interface Sampler {
  add(block: OpenBlock): void
  /** Null: more than there is room for. */
  result(): SampledEvents | null
}

export function sampler(db: Database, org: number): Sampler {
  const heightOf = trustHeights(db, org)
  const columnValues: { [name in (typeof columns)[number]]: number[] } = {
    session: [],
    at: [],
    type: [],
    siteId: [],
    height: [],
  }
  return {
    add(block) {
      const sessions = block.codes(member.sessionId)
      for (let row = 0; row < block.rows; row++) {
        const session = sessions[row]!
        if (!isSampled(session, sampledOneIn) || block.code(member.type, row) === 0) continue
        columnValues.session.push(session)
        columnValues.at.push(block.at(row))
        columnValues.type.push(block.code(member.type, row))
        columnValues.siteId.push(block.code(member.siteId, row))
        columnValues.height.push(trustHeight(heightOf, block, row))
      }
    },
    result() {
      const rows = columnValues.session.length
      if (rows > rowsMax) return null
      const columnEntries = columns.map((name) => [name, Float64Array.from(columnValues[name])])
      return { ...(Object.fromEntries(columnEntries) as SampledEvents), rows }
    },
  }
}

export function packSample(sample: SampledEvents): Uint8Array {
  const sampleColumns = columns.map((name) => sample[name])
  return sample.rows === 0 ? new Uint8Array(0) : packSealed(sampleColumns, sample.rows)
}

export function openSample(packed: Uint8Array): SampledEvents {
  const opened = packed.length === 0 ? null : openColumns(inflateColumns(packed), columns.length)
  const read = columns.map((name, index) => [name, opened?.column(index) ?? new Float64Array(0)])
  return { ...(Object.fromEntries(read) as SampledEvents), rows: opened?.rows ?? 0 }
}

/** For `verify`. */
export function isSameSample(a: SampledEvents, b: SampledEvents): boolean {
  return columns.every(
    (name) => a[name].length === b[name].length && a[name].every((value, row) => value === b[name][row]),
  )
}
