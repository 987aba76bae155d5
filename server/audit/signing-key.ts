/** The key with which this appliance signs what it knows of its audit chains (Ed25519, a file of mode 0600). */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeOnce } from '../../db/rules/durable-files.ts'

export interface SigningKey {
  publicKey: string // 32 bytes, base64url
  sign(text: string): string // 64 bytes, base64url
}

const fileName = 'audit-signing.key'
export const checkpointsFileName = 'audit-checkpoints'

/** Makes the key at the first call in a data folder, behind the file of the checkpoints that it signs. */
export function openSigningKey(folder: string): SigningKey {
  return readSigningKey(folder) ?? makeSigningKey(folder)
}

/** Null when the folder has none yet; creates and changes nothing. */
export function readSigningKey(folder: string): SigningKey | null {
  const path = join(folder, fileName)
  if (!existsSync(path)) return null
  try {
    return signingKey(createPrivateKey(readFileSync(path, 'utf8')))
  } catch (error) {
    throw new Error(`${fileName} is damaged`, { cause: error })
  }
}

/** Whether `signature` was made over `text` by the holder of the key; false for anything malformed. */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
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
  return signingKey(createPrivateKey(makeOnce(join(folder, fileName), pem)))
}

function signingKey(key: KeyObject): SigningKey {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  if (x === undefined) throw new Error(`${fileName} holds no Ed25519 key`)
  return {
    publicKey: x,
    sign: (text) => sign(null, Buffer.from(text), key).toString('base64url'),
  }
}
