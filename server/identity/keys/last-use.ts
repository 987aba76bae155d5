/** Records when and from where each key was last used, and writes it to the store once per minute. */
import type { ApiKey, Store } from '../../../db/contract/store.ts'

export interface LastUses {
  used(key: ApiKey, atMs: number, address: string): void
  /** Writes pending uses; a failed write is retried at the next flush. */
  flush(): Promise<void>
}

const minuteMs = 60_000

export function makeLastUses(store: Pick<Store, 'keys'>): LastUses {
  let waiting = new Map<string, { keyId: string; atMs: number; address: string }>()
  return {
    used(key, atMs, address) {
      const minute = atMs - (atMs % minuteMs)
      const seen = waiting.get(key.id)
      if (seen) {
        seen.atMs = minute
        seen.address = address
      } else if (key.lastUsedAtMs !== minute || key.lastUsedAddress !== address) {
        waiting.set(key.id, { keyId: key.id, atMs: minute, address })
      }
    },
    async flush() {
      if (waiting.size === 0) return
      const uses = waiting
      waiting = new Map()
      try {
        await store.keys.touch([...uses.values()])
      } catch (error) {
        for (const [id, use] of uses) if (!waiting.has(id)) waiting.set(id, use)
        throw error
      }
    },
  }
}
