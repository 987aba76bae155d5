/** Rate limits as token buckets, per address and per key (contract §3): a burst of n, then n in every window. */
import type { ApiKey } from '../../db/contract/store.ts'
import { senderName } from '../identity/sign-in/throttle.ts'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { RateLimit } from './token-buckets.ts'
import { contextOf } from './request-context.ts'
import { pathOf } from './path.ts'
import { tokenBuckets } from './token-buckets.ts'

export interface RateLimits {
  /** Before anything else is looked at; throws 429 `rate_limited`. */
  address(request: Request): void
  /** When the key is known and may; throws 429 `rate_limited`. */
  key(request: Request, key: ApiKey): void
  /** As options are written: `1200/m` or `off`. */
  told: { gateway: string; ingest: string }
}

export interface RateLimitConfig {
  gateway: RateLimit | null // null: off
  ingest: RateLimit | null
}

export function makeRateLimits({ gateway, ingest }: RateLimitConfig, clock: Clock): RateLimits {
  const buckets = {
    gateway: gateway && tokenBuckets(gateway, clock),
    ingest: ingest && tokenBuckets(ingest, clock),
  }
  const count = (request: Request, kind: keyof typeof buckets, policy: 'address' | 'key', name: string) => {
    const taken = buckets[kind]?.take(`${policy} ${name}`)
    if (taken === undefined) return
    const context = contextOf(request)
    const applied = { policy, ...taken }
    if (context.rateLimits === undefined) context.rateLimits = [applied]
    else context.rateLimits.push(applied)
    if (taken.waitMs === 0) return
    const seconds = Math.ceil(taken.waitMs / 1_000)
    throw new AppError('rate_limited', `Too many requests from this ${policy}; try again in ${seconds} s.`, {
      headers: { 'retry-after': String(seconds) },
    })
  }
  return {
    told: { gateway: rateText(gateway), ingest: rateText(ingest) },
    address(request) {
      const kind = kindOf(pathOf(request))
      if (kind !== null && buckets[kind] !== null)
        count(request, kind, 'address', senderName(contextOf(request).address))
    },
    key: (request, { id, kind }) => count(request, kind === 'ingest' ? 'ingest' : 'gateway', 'key', id),
  }
}

function rateText(limit: RateLimit | null): string {
  if (limit === null) return 'off'
  const unit = { 1_000: 's', 60_000: 'm', 3_600_000: 'h' }[limit.windowMs]
  return `${limit.count}/${unit ?? `${limit.windowMs}ms`}`
}

function kindOf(path: string): keyof RateLimitConfig | null {
  if (path.startsWith('/v1/sdk/')) return 'ingest'
  return path.startsWith('/v1/') ? 'gateway' : null
}

/** `RateLimit` and `RateLimit-Policy` of every answer that a limit applied to, refused or not. */
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
