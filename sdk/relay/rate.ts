/** A token bucket for each address, with an upper bound on how many are remembered. */

export interface Rate {
  /** 0 when `count` may pass now; otherwise the seconds until it may, and nothing is taken. */
  take(address: string, count: number): number
}

const addressesMax = 10_000

export function createRate(perMinute: number, nowMs: () => number): Rate {
  const buckets = new Map<string, { tokens: number; atMs: number }>()
  const perMs = perMinute / 60_000
  return {
    take(address, count) {
      const ms = nowMs()
      const bucket = buckets.get(address)
      const tokens =
        bucket === undefined ? perMinute : refilled(bucket.tokens + (ms - bucket.atMs) * perMs, perMinute)
      const isAllowed = count <= tokens
      buckets.delete(address) // and back in as the newest: the first of the map is the one unused for longest
      buckets.set(address, { tokens: isAllowed ? tokens - count : tokens, atMs: ms })
      if (buckets.size > addressesMax) buckets.delete(buckets.keys().next().value ?? address)
      return isAllowed ? 0 : Math.ceil((Math.min(count, perMinute) - tokens) / perMs / 1_000)
    },
  }
}

const refilled = (tokens: number, max: number): number => Math.min(max, Math.max(0, tokens))
