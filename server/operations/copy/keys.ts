/** The keys of a copied database: which of them its secrets and signatures need, and where the target finds them. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { makeOnce } from '../../../db/rules/durable-files.ts'
import { readTextFile } from '../../../db/rules/regular-files.ts'
import { AppError } from '../../errors.ts'
import { readSigningKey, signingKeyFileName } from '../../audit/signing.ts'
import { keyFileName, readKeyFile } from '../../system/encryption.ts'
import { keyIdOf, type KeyRing } from '../../system/key-ring.ts'
import type { DatabaseCopy } from '../../../db/contract/copy.ts'

interface CopiedKeys {
  copy: Pick<DatabaseCopy, 'keyIds' | 'signingKeys'>
  /** Data folders; null for a shared database. */
  from: string | null
  to: string | null
  /** Of the nodes of a shared database, or of a folder that is served with it. */
  ring: KeyRing | null
}

/** Throws when the target could not decrypt a secret or verify a signature. */
export function requireKeys({ copy, from, to, ring }: CopiedKeys): void {
  if (to !== null && ring === null && from !== null) return // the files of the folder go along
  const files =
    from === null ? null : [keyFileName, signingKeyFileName].map((name) => join(from, name)).join(' ')
  const make =
    files === null ? 'use the key ring of the nodes' : `cat ${files} > key-ring && chmod 600 key-ring`
  if (ring === null) {
    if (to !== null && copy.keyIds.length + copy.signingKeys.length === 0) return
    throw new AppError('conflict', 'The copy needs the key ring that the nodes share.', {
      hint: `name it with --key-file; to make one: ${make}`,
    })
  }
  const knownKeyIds = ring.encryption.map(keyIdOf)
  const lacking = copy.keyIds.filter((id) => !knownKeyIds.includes(id))
  if (lacking.length > 0)
    throw new AppError(
      'conflict',
      `The key ring lacks the key ${lacking.join(', ')}, which encrypts stored secrets.`,
      {
        hint: from === null ? make : `append the lines of ${join(from, keyFileName)} to the key ring`,
      },
    )
  const signers = ring.signing.map(publicKeyOf)
  const ownSigningKey = from === null ? null : readSigningKey(from)
  const neededKeys = [...copy.signingKeys, ...(ownSigningKey === null ? [] : [ownSigningKey.publicKey])]
  if (neededKeys.every((key) => signers.includes(key))) return
  throw new AppError('conflict', 'The key ring lacks the key that signed the audit trail.', {
    hint: from === null ? make : `append ${join(from, signingKeyFileName)} to the key ring`,
  })
}

function publicKeyOf(key: KeyObject): string {
  return createPublicKey(key).export({ format: 'jwk' }).x ?? ''
}

/** Gives a target folder its key files, unless it has some. */
export function writeKeys({ from, to, ring }: CopiedKeys): void {
  if (to === null) return
  const names = [keyFileName, signingKeyFileName].map((name) => ({ name, text: textOf(name, from, ring) }))
  for (const { name, text } of names) if (text !== null) makeOnce(join(to, name), text)
  const ownKeys = readKeyFile(join(to, keyFileName)) ?? []
  const neededKeys = ring?.encryption ?? (from === null ? null : readKeyFile(join(from, keyFileName))) ?? []
  if (neededKeys.every((key) => ownKeys.some((ownKey) => ownKey.equals(key)))) return
  throw new AppError('conflict', `${keyFileName} in ${to} is not a key of the source.`, {
    hint: 'name an empty folder',
  })
}

function textOf(name: string, from: string | null, ring: KeyRing | null): string | null {
  const path = from === null ? null : join(from, name)
  if (path !== null && existsSync(path)) return readTextFile(path)
  if (ring === null) return null
  const [signing] = ring.signing
  if (name === keyFileName) return `${ring.encryption.map((key) => key.toString('hex')).join('\n')}\n`
  return signing === undefined ? null : String(signing.export({ type: 'pkcs8', format: 'pem' }))
}
