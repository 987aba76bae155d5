/** The state, order and names of keys on the key pages. */
import type { Key, KeyKind } from '../../../api/api.ts'

export type KeyState = 'active' | 'exposed' | 'expired' | 'revoked'

/** Revoked wins over every other state. Exposure matters only while the key is usable. */
export function keyState(key: Key, nowMs: number): KeyState {
  if (key.revokedAt !== null) return 'revoked'
  if (key.expiresAt !== null && Date.parse(key.expiresAt) <= nowMs) return 'expired'
  if (key.exposedAt !== null) return 'exposed'
  return 'active'
}

/** Usable keys first, then newest first. */
export function inOrder(keys: Key[], nowMs: number): Key[] {
  const usableFirst = (key: Key): number => (['active', 'exposed'].includes(keyState(key, nowMs)) ? 0 : 1)
  return keys.toSorted((a, b) => usableFirst(a) - usableFirst(b) || (a.createdAt < b.createdAt ? 1 : -1))
}

export const kindName: { [kind in KeyKind]: string } = {
  ingest: 'ingest key',
  secret: 'secret key',
  publishable: 'publishable key',
}

/** The example call shown with a new key; null for a key that grants no access. */
export function exampleCall(kind: KeyKind): 'send' | 'read' | null {
  if (kind === 'ingest') return 'send'
  return kind === 'secret' ? 'read' : null
}
