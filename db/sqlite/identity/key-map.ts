/** Every key by its hash, in the memory of the calling thread, kept exact by the verbs that pass through it. */
import type { ApiKey } from '../../contract/store.ts'

export interface KeyMap {
  find(hash: string): ApiKey | null
  put(key: ApiKey): void
  change(keyId: string, change: (key: ApiKey) => void): void
  dropOrg(orgId: string): void
}

export function keyMap(keys: ApiKey[]): KeyMap {
  const byHash = new Map(keys.map((key) => [key.hash, key]))
  const byId = new Map(keys.map((key) => [key.id, key]))
  return {
    find(hash) {
      const key = byHash.get(hash)
      return key === undefined ? null : { ...key } // a copy: what the caller does with it stays the caller's
    },
    put(key) {
      const copy = structuredClone(key)
      byHash.set(copy.hash, copy)
      byId.set(copy.id, copy)
    },
    change(keyId, change) {
      const key = byId.get(keyId)
      if (key !== undefined) change(key)
    },
    dropOrg(orgId) {
      for (const key of [...byId.values()]) {
        if (key.orgId !== orgId) continue
        byHash.delete(key.hash)
        byId.delete(key.id)
      }
    },
  }
}
