/** The key of the block tables: organization number and arrival number in one integer. */

/** Each organization counts its arrivals from 1 without a gap, so a block is a first seq and a count. */
const seqsPerOrg = 2 ** 36
export const seqMax = seqsPerOrg - 1

/** Keeps `org * seqsPerOrg` within the integers a double can hold. */
export const orgsMax = 2 ** 16

/** Events in a block at most; more compresses hardly better and makes a page slower. */
export const blockEventsMax = 256

/** Arrivals in a segment: what a bitmap of the segment index covers. No block crosses a segment's end. */
export const segmentEvents = 65_536

export function placeOf(org: number, seq: number): number {
  return org * seqsPerOrg + seq
}

export function seqOf(place: number): number {
  return place % seqsPerOrg
}

export function segmentOf(seq: number): number {
  return Math.floor(seq / segmentEvents)
}

/** Blocks up to such an arrival are final: what comes later lies in another segment. */
export function endsSegment(seq: number): boolean {
  return segmentOf(seq) !== segmentOf(seq + 1)
}
