/** The key of the block tables: organization number and arrival number in one integer. */

/** Each organization numbers its arrivals from 1 without a gap, so a first seq and a count describe a block. */
const seqsPerOrg = 2 ** 36
export const seqMax = seqsPerOrg - 1

/** Keeps `org * seqsPerOrg` within the integers a double can hold. */
export const orgsMax = 2 ** 16

/** Maximum events per block. More would hardly compress better and slow down a page. */
export const blockEventsMax = 256

/** Arrivals per segment, the size of a bitmap of the segment index. No block crosses a segment's end. */
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

/** Blocks up to such an arrival are final, because later events are in another segment. */
export function endsSegment(seq: number): boolean {
  return segmentOf(seq) !== segmentOf(seq + 1)
}
