/** What the key screens say about a key, and in which order keys stand. */
import type { Key, KeyKind } from '../../../api/api.ts'

export type KeyState = 'active' | 'exposed' | 'expired' | 'revoked'

/** A revoked key is revoked, whatever else happened to it; exposure asks for action only while the key works. */
export function keyState(key: Key, nowMs: number): KeyState {
  if (key.revokedAt !== null) return 'revoked'
  if (key.expiresAt !== null && Date.parse(key.expiresAt) <= nowMs) return 'expired'
  if (key.exposedAt !== null) return 'exposed'
  return 'active'
}

/** Keys that work come first, the newest on top. */
export function inOrder(keys: Key[], nowMs: number): Key[] {
  const works = (key: Key): number => (['active', 'exposed'].includes(keyState(key, nowMs)) ? 0 : 1)
  return keys.toSorted((a, b) => works(a) - works(b) || (a.createdAt < b.createdAt ? 1 : -1))
}

export const kindName: { [kind in KeyKind]: string } = {
  ingest: 'ingest key',
  secret: 'secret key',
  publishable: 'publishable key',
}

/** The call that proves a new key, or null for one that opens no endpoint. */
export function provingCall(kind: KeyKind): 'send' | 'read' | null {
  if (kind === 'ingest') return 'send'
  return kind === 'secret' ? 'read' : null
}
