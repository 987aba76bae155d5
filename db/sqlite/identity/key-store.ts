/** The keys' part of the store: look-ups from memory, changes through the writer and then into memory. */
import type { ApiKey, KeyStore } from '../../contract/store.ts'
import { keyMap } from './key-map.ts'
import type { Threads } from '../threads/threads.ts'

export function keyStore(
  { read, write }: Pick<Threads, 'read' | 'write'>,
  loaded: ApiKey[],
): KeyStore & { dropOrg(orgId: string): void } {
  const keys = keyMap(loaded)
  return {
    async create(command) {
      await write('keys.create', command)
      keys.put(command.key)
    },
    list: (orgId, kind) => read('keys.list', { orgId, kind: kind ?? null }),
    findByHash: async (hash) => keys.find(hash),
    async revoke(command) {
      const revoked = await write('keys.revoke', command)
      if (revoked) keys.change(command.keyId, (key) => (key.revokedAtMs = command.now))
      return revoked
    },
    async change(command) {
      await write('keys.change', command)
      keys.change(command.keyId, (key) => void Object.assign(key, structuredClone(command.terms)))
    },
    async rotate(command) {
      await write('keys.rotate', command)
      keys.put(command.successor)
      keys.change(command.keyId, (key) => (key.expiresAtMs = sooner(key.expiresAtMs, command.oldEndsAtMs)))
    },
    dropOrg: keys.dropOrg,
    async touch(uses) {
      if (uses.length === 0) return
      await write('keys.touch', uses)
      for (const use of uses) {
        keys.change(use.keyId, (key) => {
          if (key.lastUsedAtMs !== null && key.lastUsedAtMs > use.atMs) return
          key.lastUsedAtMs = use.atMs
          key.lastUsedAddress = use.address
        })
      }
    },
    async markExposed(command) {
      const first = await write('keys.markExposed', command)
      if (first) keys.change(command.keyId, (key) => (key.exposedAtMs = command.now))
      return first
    },
  }
}

function sooner(endsAtMs: number | null, otherMs: number): number {
  return endsAtMs === null ? otherMs : Math.min(endsAtMs, otherMs)
}
