/**
 * A signed head: what the end of an audit chain was at some time, in a form that cannot be made up afterwards.
 *
 * The signature is over JSON.stringify(['sightglass-audit-head-1', orgId, count, hash, at]), UTF-8.
 */
import type { AuditHead } from '../../db/store.ts'
import { isoTime } from '../clock.ts'
import { isSignedBy, type SigningKey } from './signing-key.ts'

export interface SignedHead extends AuditHead {
  orgId: string
  at: string
  key: string // the public one, base64url
  signature: string // base64url
}

export const emptyHead: AuditHead = { count: 0, hash: '0'.repeat(64) }

export function signHead(
  key: SigningKey,
  orgId: string,
  { count, hash }: AuditHead,
  atMs: number,
): SignedHead {
  const at = isoTime(atMs)
  const signature = key.sign(headText({ orgId, count, hash, at }))
  return { orgId, count, hash, at, key: key.publicKey, signature }
}

/** Whether the head is signed by the key that it names. Whose key that is, is for the caller to know. */
export function isSoundHead(head: SignedHead): boolean {
  return isSignedBy(head.key, headText(head), head.signature)
}

function headText({ orgId, count, hash, at }: Omit<SignedHead, 'key' | 'signature'>): string {
  return JSON.stringify(['sightglass-audit-head-1', orgId, count, hash, at])
}
