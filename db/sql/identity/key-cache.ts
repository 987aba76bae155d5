/** Caches API keys and restricted sites on the calling thread, because ingest reads both for every request. */
import type { ApiKey, KeyStore, SiteStore } from '../../contract/store.ts'
import type { Nouns } from '../threads/threads.ts'

/** Every change goes to the writer first, and to the cache when it is on disk. */
export function cachedKeys(
  remote: Nouns['keys'],
  loaded: ApiKey[],
): KeyStore & { dropOrg(orgId: string): void } {
  const keys = keyMap(loaded)
  return {
    ...remote,
    async create(command) {
      await remote.create(command)
      keys.put(command.key)
    },
    findByHash: async (hash) => keys.find(hash),
    async revoke(command) {
      const revoked = await remote.revoke(command)
      if (revoked) keys.change(command.keyId, (key) => (key.revokedAtMs = command.now))
      return revoked
    },
    async change(command) {
      await remote.change(command)
      keys.change(command.keyId, (key) => void Object.assign(key, structuredClone(command.settings)))
    },
    async rotate(command) {
      await remote.rotate(command)
      keys.put(command.successor)
      keys.change(command.keyId, (key) => (key.expiresAtMs = sooner(key.expiresAtMs, command.oldEndsAtMs)))
    },
    async touch(uses) {
      if (uses.length === 0) return
      await remote.touch(uses)
      for (const use of uses) {
        keys.change(use.keyId, (key) => {
          if (key.lastUsedAtMs !== null && key.lastUsedAtMs > use.atMs) return
          key.lastUsedAtMs = use.atMs
          key.lastUsedAddress = use.address
        })
      }
    },
    async markExposed(command) {
      const first = await remote.markExposed(command)
      if (first) keys.change(command.keyId, (key) => (key.exposedAtMs = command.now))
      return first
    },
    dropOrg: keys.dropOrg,
  }
}

function sooner(endsAtMs: number | null, otherMs: number): number {
  return endsAtMs === null ? otherMs : Math.min(endsAtMs, otherMs)
}

function keyMap(keys: ApiKey[]) {
  const byHash = new Map(keys.map((key) => [key.hash, key]))
  const byId = new Map(keys.map((key) => [key.id, key]))
  return {
    find(hash: string): ApiKey | null {
      const key = byHash.get(hash)
      return key === undefined ? null : { ...key } // a copy that the caller may change
    },
    put(key: ApiKey): void {
      const copy = structuredClone(key)
      byHash.set(copy.hash, copy)
      byId.set(copy.id, copy)
    },
    change(keyId: string, change: (key: ApiKey) => void): void {
      const key = byId.get(keyId)
      if (key !== undefined) change(key)
    },
    dropOrg(orgId: string): void {
      for (const key of [...byId.values()]) {
        if (key.orgId !== orgId) continue
        byHash.delete(key.hash)
        byId.delete(key.id)
      }
    },
  }
}

const none: ReadonlySet<string> = new Set()

export function cachedSites(remote: Nouns['sites'], loaded: { orgId: string; siteId: string }[]): SiteStore {
  const byOrg = new Map<string, Set<string>>()
  const put = (orgId: string, siteId: string): void => {
    const sites = byOrg.get(orgId) ?? new Set()
    byOrg.set(orgId, sites.add(siteId))
  }
  for (const { orgId, siteId } of loaded) put(orgId, siteId)
  return {
    ...remote,
    async change(command) {
      await remote.change(command)
      const { orgId, site } = command
      if (site.restricted) put(orgId, site.siteId)
      else byOrg.get(orgId)?.delete(site.siteId)
    },
    restricted: async (orgId) => byOrg.get(orgId) ?? none,
  }
}
