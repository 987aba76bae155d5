/**
 * A signed head: what the end of an audit chain was at some time, in a form that cannot be made up afterwards; and a
 * signed trim: where a chain begins since retention took its oldest entries.
 *
 * The signature is over JSON.stringify(['sightglass-audit-head-1', orgId, count, hash, at]), UTF-8. Of a trim it is
 * over the same with 'sightglass-audit-trim-1': or any checkpoint would pass for leave to delete what lies before it.
 */
import type { AuditHead, AuditTrim } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'
import { isSignedBy, type SigningKey } from './signing-key.ts'

export interface SignedHead extends AuditHead {
  orgId: string
  at: string
  key: string // the public one, base64url
  signature: string // base64url
}

const headTag = 'sightglass-audit-head-1'
const trimTag = 'sightglass-audit-trim-1'

export const emptyHead: AuditHead = { count: 0, hash: '0'.repeat(64) }

export function signHead(key: SigningKey, orgId: string, head: AuditHead, atMs: number): SignedHead {
  return signed(key, headTag, { orgId, count: head.count, hash: head.hash, at: isoTime(atMs) })
}

export function signTrim(key: SigningKey, orgId: string, point: AuditHead, atMs: number): AuditTrim {
  return signed(key, trimTag, { orgId, count: point.count, hash: point.hash, at: isoTime(atMs) })
}

/** Whether the head is signed by the key that it names. Whose key that is, is for the caller to know. */
export function isSoundHead(head: SignedHead): boolean {
  return isSignedBy(head.key, textOf(headTag, head), head.signature)
}

/** Whether the trim is signed by the key that it names. */
export function isSoundTrim(trim: AuditTrim): boolean {
  return isSignedBy(trim.key, textOf(trimTag, trim), trim.signature)
}

type Unsigned = Omit<SignedHead, 'key' | 'signature'>

function signed(key: SigningKey, tag: string, fields: Unsigned): SignedHead {
  return { ...fields, key: key.publicKey, signature: key.sign(textOf(tag, fields)) }
}

function textOf(tag: string, { orgId, count, hash, at }: Unsigned): string {
  return JSON.stringify([tag, orgId, count, hash, at])
}
