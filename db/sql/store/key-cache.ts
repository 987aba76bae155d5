/** Caches API keys and restricted sites on the calling thread, because ingest reads both for every request. */
import type { ApiKey, KeyStore, SiteStore } from '../../contract/store.ts'
import type { Nouns } from './threads.ts'

/** A cache that can be read again, because another node changed what it holds. */
interface Cached {
  reload(): Promise<void>
}

/** Every change goes to the writer first, and to the cache when it is on disk. */
export function cachedKeys(
  remote: Nouns['keys'],
  loaded: ApiKey[],
): KeyStore & Cached & { dropOrg(orgId: string): void } {
  let keys = keyMap(loaded)
  const { changing, load } = changes()
  return {
    ...remote,
    create: (command) => changing(remote.create(command), () => keys.put(command.key)),
    findByHash: (hash) => keys.find(hash),
    revoke: (command) =>
      changing(remote.revoke(command), (revoked) => {
        if (revoked) keys.change(command.keyId, (key) => (key.revokedAtMs = command.now))
      }),
    change: (command) =>
      changing(remote.change(command), () =>
        keys.change(command.keyId, (key) => void Object.assign(key, structuredClone(command.settings))),
      ),
    rotate: (command) =>
      changing(remote.rotate(command), () => {
        keys.put(command.successor)
        keys.change(command.keyId, (key) => (key.expiresAtMs = sooner(key.expiresAtMs, command.oldEndsAtMs)))
      }),
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
    markExposed: (command) =>
      changing(remote.markExposed(command), (first) => {
        if (first) keys.change(command.keyId, (key) => (key.exposedAtMs = command.now))
      }),
    dropOrg: (orgId) => keys.dropOrg(orgId),
    reload: async () => void (keys = keyMap(await load(remote.all))),
  }
}

/** What was read while this store changed the same rows may lack the change, so it is read again. */
function changes() {
  const running = new Set<Promise<unknown>>()
  let count = 0
  return {
    /** Applies a change to the cache when it is committed. */
    async changing<T>(change: Promise<T>, apply: (result: T) => void): Promise<T> {
      running.add(change)
      try {
        const result = await change
        apply(result)
        return result
      } finally {
        running.delete(change)
        count++
      }
    },
    async load<T>(read: () => Promise<T>): Promise<T> {
      for (;;) {
        await Promise.allSettled(running)
        const countBefore = count
        const result = await read()
        if (count === countBefore && running.size === 0) return result
      }
    },
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

const noSites: ReadonlySet<string> = new Set()

export function cachedSites(
  remote: Nouns['sites'],
  loaded: { orgId: string; siteId: string }[],
  read: () => Promise<{ orgId: string; siteId: string }[]>,
): SiteStore & Cached {
  let byOrg = sitesByOrg(loaded)
  const { changing, load } = changes()
  return {
    ...remote,
    change: (command) =>
      changing(remote.change(command), () => {
        const { orgId, site } = command
        const sites = byOrg.get(orgId) ?? new Set()
        byOrg.set(orgId, sites)
        if (site.restricted) sites.add(site.siteId)
        else sites.delete(site.siteId)
      }),
    restricted: (orgId) => byOrg.get(orgId) ?? noSites,
    reload: async () => void (byOrg = sitesByOrg(await load(read))),
  }
}

function sitesByOrg(restricted: { orgId: string; siteId: string }[]): Map<string, Set<string>> {
  const groups = Map.groupBy(restricted, ({ orgId }) => orgId)
  return new Map([...groups].map(([orgId, sites]) => [orgId, new Set(sites.map(({ siteId }) => siteId))]))
}
