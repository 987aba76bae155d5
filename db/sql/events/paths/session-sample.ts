/** The events of one in sixteen sessions of a sealed segment, from which Detect reads the trust that sessions reach. */
import type { Database } from '../../database.ts'
import type { OpenBlock } from '../blocks/block-table.ts'
import { hashSpan, isHash, member, termTexts, trustLadder } from '../blocks/fields.ts'
import { inflateColumns, openColumns, packSealed } from '../blocks/number-columns.ts'

/** Of sessions, by their hash: whoever sends them cannot choose it. */
export const sampledOneIn = 16

export function isSampled(sessionCode: number, oneIn: number): boolean {
  return sessionCode % hashSpan < hashSpan / oneIn
}

/** A row per event: what `readTrustReached` needs of it. */
const columns = ['session', 'at', 'type', 'siteId', 'height'] as const
export type SampledEvents = { [name in (typeof columns)[number]]: Float64Array } & { rows: number }

/** Of a blob. A segment of which more events are sampled has none, and its blocks are read. */
const rowsMax = 0xffff

/** The place of a row's trust in `trustLadder`; -1 for none, or a word of the sender's own. */
export function heightsOf(db: Database, org: number): (block: OpenBlock, row: number) => number {
  const known = new Map<number, number>([[0, -1]])
  let texts: Map<number, string> | null = null
  return (block, row) => {
    const code = block.code(member.trust, row)
    // Two texts may share a hash.
    if (isHash(code)) return trustLadder.indexOf(block.hashedText(member.trust, row) ?? '')
    let height = known.get(code)
    if (height === undefined) {
      texts ??= termTexts(db, org, member.trust)
      known.set(code, (height = trustLadder.indexOf(texts.get(code) ?? '')))
    }
    return height
  }
}

export interface Sampler {
  add(block: OpenBlock): void
  /** Null: more than there is room for. */
  result(): SampledEvents | null
}

export function sampler(db: Database, org: number): Sampler {
  const heightOf = heightsOf(db, org)
  const found: { [name in (typeof columns)[number]]: number[] } = {
    ...{ session: [], at: [], type: [], siteId: [], height: [] },
  }
  return {
    add(block) {
      const sessions = block.codes(member.sessionId)
      for (let row = 0; row < block.rows; row++) {
        const session = sessions[row]!
        if (!isSampled(session, sampledOneIn) || block.code(member.type, row) === 0) continue
        found.session.push(session)
        found.at.push(block.at(row))
        found.type.push(block.code(member.type, row))
        found.siteId.push(block.code(member.siteId, row))
        found.height.push(heightOf(block, row))
      }
    },
    result() {
      const rows = found.session.length
      if (rows > rowsMax) return null
      const made = columns.map((name) => [name, Float64Array.from(found[name])])
      return { ...(Object.fromEntries(made) as SampledEvents), rows }
    },
  }
}

export function packSample(sample: SampledEvents): Uint8Array {
  const all = columns.map((name) => sample[name])
  return sample.rows === 0 ? new Uint8Array(0) : packSealed(all, sample.rows)
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
