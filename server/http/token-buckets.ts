/** Token buckets by name: a burst of n, then n in every window, in bounded memory. */
import { elapsedMs, type Clock } from '../clock.ts'

/** `count` requests per window; the same number is the burst. */
export interface RateLimit {
  count: number
  windowMs: number
}

export interface Taken {
  count: number // of the limit
  windowMs: number
  remaining: number
  fullMs: number // until the whole burst is there again
  waitMs: number // 0: the request may pass; else until it would
}

/**
 * What a bucket holds is kept in whole numbers, so that who waits as told is let in: a token is as many grains as the
 * window has milliseconds, and each millisecond brings as many grains as the limit has tokens.
 */
interface Bucket {
  grains: number
  atMs: number
  placedAtMs: number // when it went to the end of the map
}

const bucketsMax = 50_000

/** A bucket in use moves to the end of the map this often: each move costs a map more than all else here. */
const placeEveryMs = 1_000

export function tokenBuckets({ count, windowMs }: RateLimit, clock: Clock) {
  const buckets = new Map<string, Bucket>()
  const full = count * windowMs

  /** The map is kept in order of last use, to a second: what is forgotten first has the fullest bucket. */
  function bucketOf(name: string, now: number): Bucket {
    let bucket = buckets.get(name)
    if (bucket !== undefined && Math.abs(now - bucket.placedAtMs) < placeEveryMs) return bucket
    bucket ??= { grains: full, atMs: now, placedAtMs: now }
    bucket.placedAtMs = now
    buckets.delete(name)
    buckets.set(name, bucket)
    if (buckets.size > bucketsMax) buckets.delete(buckets.keys().next().value!)
    return bucket
  }

  return {
    take(name: string): Taken {
      const now = Math.floor(elapsedMs(clock))
      const bucket = bucketOf(name, now)
      // A clock set back gives nothing, and takes nothing away.
      const passedMs = Math.max(0, now - bucket.atMs)
      const grains = Math.min(full, bucket.grains + passedMs * count)
      const passes = grains >= windowMs
      const left = passes ? grains - windowMs : grains
      bucket.grains = left
      bucket.atMs = now
      return {
        count,
        windowMs,
        remaining: Math.floor(left / windowMs),
        fullMs: Math.ceil((full - left) / count),
        waitMs: passes ? 0 : Math.ceil((windowMs - grains) / count),
      }
    },
  }
}
