/** Caches which positions of a sealed segment match a filter. A segment's index never changes. */
import type { Database } from 'bun:sqlite'
import type { Clause } from '../index/filter-codes.ts'
import { newBitmap, setBit, type Bitmap } from '../index/positions.ts'

/*
 * Paging through a filter, or repeating it while events arrive, would otherwise read and intersect the index of every
 * segment each time: 10 ms with ten million events. Erasure does not change an index, retention deletes a segment
 * whole, and no number is used twice. A large set is not cached, because reading it again is as quick.
 */
const positionsMax = 256
const codesMax = 64
const bytesMax = 2 * 1024 * 1024
const entryBytes = 64

interface Answers {
  isKept: boolean // false when it was evicted while a read in slices still adds to it
  bytes: number
  bySegment: Map<number, Uint16Array | null>
}

/** Positions of a segment that match all clauses, null for none. `work` computes them. */
export type Recall = (segment: number, work: () => Bitmap | null) => Bitmap | null

interface Kept {
  bytes: number
  byQuestion: Map<string, Answers>
}

const caches = new WeakMap<Database, Kept>()

/** Enables the cache on a reader's connection. Other connections may share it. */
export function cacheMatches(db: Database, sharedWith = db): void {
  caches.set(db, caches.get(sharedWith) ?? { bytes: 0, byQuestion: new Map() })
}

export function recallMatches(db: Database, org: number, clauses: readonly Clause[]): Recall {
  const cache = caches.get(db)
  const codes = clauses.reduce((sum, clause) => sum + clause.codes.size, 0)
  if (cache === undefined || codes === 0 || codes > codesMax) return (_, work) => work()
  const answers = answersTo(cache, questionOf(org, clauses))
  return (segment, work) => {
    const known = answers.bySegment.get(segment)
    if (known !== undefined) return known === null ? null : bitmapOf(known)
    const found = work()
    const positions = found === null ? null : positionsOf(found)
    if (positions !== undefined && makeRoom(cache, answers, entryBytes + (positions?.byteLength ?? 0)))
      answers.bySegment.set(segment, positions)
    return found
  }
}

function questionOf(org: number, clauses: readonly Clause[]): string {
  const asked = clauses.map(({ member, codes }) => `${member}:${[...codes].sort((a, b) => a - b).join()}`)
  return `${org} ${asked.join(' ')}`
}

/** Moves the entry to the end, because the first is evicted next. */
function answersTo(cache: Kept, question: string): Answers {
  const known = cache.byQuestion.get(question)
  const answers = known ?? { isKept: true, bytes: 0, bySegment: new Map() }
  cache.byQuestion.delete(question)
  cache.byQuestion.set(question, answers)
  if (known === undefined) makeRoom(cache, answers, entryBytes + question.length * 2)
  return answers
}

/** Evicts the entry used longest ago; false when only this one's positions are left and the cache is full. */
function makeRoom(cache: Kept, answers: Answers, bytes: number): boolean {
  if (!answers.isKept) return false
  while (cache.bytes + bytes > bytesMax) {
    const [oldest] = cache.byQuestion
    if (oldest === undefined || oldest[1] === answers) return false
    cache.byQuestion.delete(oldest[0])
    cache.bytes -= oldest[1].bytes
    oldest[1].isKept = false
  }
  answers.bytes += bytes
  cache.bytes += bytes
  return true
}

function bitmapOf(positions: Uint16Array): Bitmap {
  const bitmap = newBitmap()
  for (const position of positions) setBit(bitmap, position)
  return bitmap
}

/** Undefined when there are too many. */
function positionsOf(bitmap: Bitmap): Uint16Array | undefined {
  const positions: number[] = []
  for (let word = 0; word < bitmap.length; word++) {
    for (let bits = bitmap[word]!; bits !== 0; bits &= bits - 1) {
      if (positions.length === positionsMax) return undefined
      positions.push(word * 32 + 31 - Math.clz32(bits & -bits))
    }
  }
  return Uint16Array.from(positions)
}
