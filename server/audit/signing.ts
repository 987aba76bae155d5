/** Signs heads and trims of audit chains with the appliance's Ed25519 key, and verifies such signatures. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { makeOnce } from '../../db/rules/durable-files.ts'
import { readTextFile } from '../../db/rules/regular-files.ts'
import { isoTime } from '../clock.ts'
import type { KeyRing } from '../system/key-ring.ts'
import type { AuditHead, AuditTrim, SignedHead } from '../../db/contract/store.ts'

export interface SigningKey {
  publicKey: string // 32 bytes, base64url
  sign(text: string): string // 64 bytes, base64url
}

export const signingKeyFileName = 'audit-signing.key'
export const checkpointsFileName = 'audit-checkpoints'

/** Reads the key of a data folder; creates it, after the file of checkpoints, when it is missing. */
export function openSigningKey(folder: string): SigningKey {
  return readSigningKey(folder) ?? makeSigningKey(folder)
}

/** The key with which every node of a key ring signs. */
export function ringSigningKey({ signing: [newest] }: KeyRing): SigningKey {
  if (newest === undefined) throw new Error('the key ring contains no signing key')
  return signingKey(newest)
}

/** The public keys whose checkpoints and trims belong to this appliance: of its data folder and of its key ring. */
export function trustedKeys(folder: string, ring: KeyRing | null): string[] {
  const ownKey = readSigningKey(folder)
  const shared = (ring?.signing ?? []).map((key) => signingKey(key).publicKey)
  return [...(ownKey === null ? [] : [ownKey.publicKey]), ...shared]
}

/** Null when the folder has no key; never writes. */
export function readSigningKey(folder: string): SigningKey | null {
  const path = join(folder, signingKeyFileName)
  if (!existsSync(path)) return null
  try {
    return signingKey(createPrivateKey(readTextFile(path)))
  } catch (error) {
    throw new Error(`${signingKeyFileName} is damaged`, { cause: error })
  }
}

/**
 * Whether the holder of the key signed `text`; false for malformed input. Of all texts that decode to the same key or
 * signature only the one that `signingKey` writes is accepted, because otherwise a proof could be altered unnoticed.
 */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  const isExact = (part: string) => Buffer.from(part, 'base64url').toString('base64url') === part
  if (!isExact(publicKey) || !isExact(signature)) return false
  try {
    const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: publicKey } })
    return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'))
  } catch {
    return false
  }
}

function makeSigningKey(folder: string): SigningKey {
  if (!existsSync(join(folder, checkpointsFileName))) makeOnce(join(folder, checkpointsFileName), '')
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return signingKey(createPrivateKey(makeOnce(join(folder, signingKeyFileName), pem)))
}

function signingKey(key: KeyObject): SigningKey {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  if (x === undefined) throw new Error(`${signingKeyFileName} contains no Ed25519 key`)
  return {
    publicKey: x,
    sign: (text) => sign(null, Buffer.from(text), key).toString('base64url'),
  }
}

/**
 * A signed head proves the end of an audit chain at some time, because nobody can forge it afterwards. A signed trim
 * proves where a chain begins since retention deleted its oldest entries.
 *
 * The signature is over JSON.stringify(['sightglass-audit-head-1', orgId, count, hash, at]), UTF-8. The signature of a
 * trim has 'sightglass-audit-trim-1' instead; otherwise any checkpoint would permit deleting the entries before it.
 */
const headTag = 'sightglass-audit-head-1'
const trimTag = 'sightglass-audit-trim-1'

export const emptyHead: AuditHead = { count: 0, hash: '0'.repeat(64) }

export function signHead(key: SigningKey, orgId: string, head: AuditHead, atMs: number): SignedHead {
  return signed(key, headTag, { orgId, count: head.count, hash: head.hash, at: isoTime(atMs) })
}

export function signTrim(key: SigningKey, orgId: string, point: AuditHead, atMs: number): AuditTrim {
  return signed(key, trimTag, { orgId, count: point.count, hash: point.hash, at: isoTime(atMs) })
}

/** Whether the head is signed by the key it contains. The caller decides whether to trust that key. */
export function isSoundHead(head: SignedHead): boolean {
  return isSignedBy(head.key, textOf(headTag, head), head.signature)
}

/** Whether the trim is signed by the key it contains. */
export function isSoundTrim(trim: AuditTrim): boolean {
  return isSignedBy(trim.key, textOf(trimTag, trim), trim.signature)
}

type Unsigned = Omit<SignedHead, 'key' | 'signature'>

function signed(key: SigningKey, tag: string, fields: Unsigned): SignedHead {
  return { ...fields, key: key.publicKey, signature: key.sign(textOf(tag, fields)) }
}

function textOf(tag: string, { orgId, count, hash, at: signedAt }: Unsigned): string {
  return JSON.stringify([tag, orgId, count, hash, signedAt])
}
