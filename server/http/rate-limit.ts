/** Rate limits per address and per key (contract §3), as token buckets: a burst of n, then n per window. */
import { senderName } from './address.ts'
import { AppError } from '../errors.ts'
import { contextOf, isOtlp, pathOf, type BucketState } from './request.ts'
import { elapsedMs, type Clock } from '../clock.ts'
import type { ApiKey } from '../../db/contract/store.ts'

/** `count` requests per window; the same number is the burst. */
export interface RateLimit {
  count: number
  windowMs: number
}

export interface RateLimits {
  /** Runs before everything else; throws 429 `rate_limited`. */
  address(request: Request): void
  /** Runs after authentication; throws 429 `rate_limited`. */
  key(request: Request, key: ApiKey): void
  /** In the notation of the options: `1200/m` or `off`. */
  published: { gateway: string; ingest: string }
}

interface RateLimitConfig {
  gateway: RateLimit | null // null: off
  ingest: RateLimit | null
}

export function makeRateLimits({ gateway, ingest }: RateLimitConfig, clock: Clock): RateLimits {
  const buckets = {
    gateway: gateway && tokenBuckets(gateway, clock),
    ingest: ingest && tokenBuckets(ingest, clock),
  }
  const count = (request: Request, kind: keyof typeof buckets, policy: 'address' | 'key', name: string) => {
    const state = buckets[kind]?.take(`${policy} ${name}`)
    if (state === undefined) return
    const context = contextOf(request)
    const applied = { policy, ...state }
    if (context.rateLimits === undefined) context.rateLimits = [applied]
    else context.rateLimits.push(applied)
    if (state.waitMs === 0) return
    const seconds = Math.ceil(state.waitMs / 1_000)
    throw new AppError('rate_limited', `Too many requests from this ${policy}. Try again in ${seconds} s.`, {
      headers: { 'retry-after': String(seconds) },
    })
  }
  return {
    published: { gateway: rateText(gateway), ingest: rateText(ingest) },
    address(request) {
      if (gateway === null && ingest === null) return
      const kind = kindOf(request.method, pathOf(request))
      if (kind !== null && buckets[kind] !== null)
        count(request, kind, 'address', senderName(contextOf(request).sender().address))
    },
    key: (request, { id, kind }) => count(request, kind === 'ingest' ? 'ingest' : 'gateway', 'key', id),
  }
}

function rateText(limit: RateLimit | null): string {
  if (limit === null) return 'off'
  const unit = { 1_000: 's', 60_000: 'm', 3_600_000: 'h' }[limit.windowMs]
  return `${limit.count}/${unit ?? `${limit.windowMs}ms`}`
}

function kindOf(method: string, path: string): keyof RateLimitConfig | null {
  if (path.startsWith('/v1/sdk/') || isOtlp(method, path)) return 'ingest'
  return path.startsWith('/v1/') ? 'gateway' : null
}

/** The headers `RateLimit` and `RateLimit-Policy`, sent whenever a limit applied. */
export function rateLimitHeaders(limits: NonNullable<ReturnType<typeof contextOf>['rateLimits']>): {
  [name: string]: string
} {
  const seconds = (ms: number) => Math.ceil(ms / 1_000)
  return {
    ratelimit: limits
      .map(({ policy, remaining, fullMs }) => `"${policy}";r=${remaining};t=${seconds(fullMs)}`)
      .join(', '),
    'ratelimit-policy': limits
      .map(({ policy, count, windowMs }) => `"${policy}";q=${count};w=${seconds(windowMs)}`)
      .join(', '),
  }
}

/**
 * Counts in integers, so a client that waits exactly `Retry-After` is accepted: one token is `windowMs` grains, and
 * every millisecond adds `count` grains.
 */
interface Bucket {
  grains: number
  atMs: number
  movedAtMs: number // when it was moved to the end of the map
}

const bucketsMax = 50_000

/** A bucket in use moves to the end of the map at most this often, because moving is the most expensive step here. */
const moveEveryMs = 1_000

/** Token buckets by name, in bounded memory. */
export function tokenBuckets({ count, windowMs }: RateLimit, clock: Clock) {
  const buckets = new Map<string, Bucket>()
  const full = count * windowMs

  /** Keeps the map in order of last use (to 1 s), so the bucket evicted first is the fullest. */
  function bucketOf(name: string, now: number): Bucket {
    let bucket = buckets.get(name)
    if (bucket !== undefined && Math.abs(now - bucket.movedAtMs) < moveEveryMs) return bucket
    bucket ??= { grains: full, atMs: now, movedAtMs: now }
    bucket.movedAtMs = now
    buckets.delete(name)
    buckets.set(name, bucket)
    if (buckets.size > bucketsMax) buckets.delete(buckets.keys().next().value!)
    return bucket
  }

  return {
    take(name: string): BucketState {
      const now = Math.floor(elapsedMs(clock))
      const bucket = bucketOf(name, now)
      // A clock that was set back adds and removes nothing.
      const passedMs = Math.max(0, now - bucket.atMs)
      const grains = Math.min(full, bucket.grains + passedMs * count)
      const passes = grains >= windowMs
      const remainingGrains = passes ? grains - windowMs : grains
      bucket.grains = remainingGrains
      bucket.atMs = now
      return {
        count,
        windowMs,
        remaining: Math.floor(remainingGrains / windowMs),
        fullMs: Math.ceil((full - remainingGrains) / count),
        waitMs: passes ? 0 : Math.ceil((windowMs - grains) / count),
      }
    },
  }
}
