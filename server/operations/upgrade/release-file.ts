/** Verifies the executable of a release: its checksum, and who signed the checksums. Needs no network. */
import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readSmallFile, unreadableReason } from '../../../db/rules/regular-files.ts'
import { releaseKeys } from '../../../sdk/judge/pack-signature.ts'
import { AppError } from '../../errors.ts'

export interface ReleaseFile {
  name: string
  sha256: string
  signed: boolean
  executable: Uint8Array
}

interface VerifyOptions {
  keyFile: string | null // PEM with the public key; null: the keys of releases that this program knows
  /** Whether an unsigned file is accepted. A wrong checksum never is. */
  trust: boolean
}

const sumsName = 'SHA256SUMS'
const releaseBytesMax = 1024 * 1024 * 1024

/** Throws an AppError that says what is wrong. Nothing is changed. */
export function readRelease(path: string, { keyFile, trust }: VerifyOptions): ReleaseFile {
  const bytes = read(path)
  const name = basename(path)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const sumsPath = join(dirname(path), sumsName)
  const sums = existsSync(sumsPath) ? read(sumsPath) : null
  if (sums !== null) requireSum(sums.toString(), name, sha256)
  const signed = sums !== null && isSigned(sums, `${sumsPath}.sig`, keysOf(keyFile))
  if (!signed && !trust)
    throw new AppError('conflict', `${name} was not installed: ${whyUnsigned(sumsPath, keyFile)}.`, {
      hint: `copy ${sumsName} and ${sumsName}.sig of the release beside it, or add --trust`,
    })
  return { name, sha256, signed, executable: unpacked(bytes, name) }
}

function read(path: string): Buffer<ArrayBuffer> {
  try {
    return readSmallFile(path, releaseBytesMax)
  } catch (error) {
    throw new AppError('not_found', `${path} cannot be read (${unreadableReason(error)}).`)
  }
}

/** The form of sha256sum: 64 digits, two spaces, the name. */
function requireSum(sums: string, name: string, sha256: string): void {
  const line = sums.split('\n').find((sumLine) => sumLine.slice(66) === name)
  if (line === undefined)
    throw new AppError('conflict', `${name} was not installed: ${sumsName} beside it does not list it.`, {
      hint: 'use the files of one release, with their names',
    })
  if (line.slice(0, 64) !== sha256)
    throw new AppError('conflict', `${name} was not installed: its checksum is not the one in ${sumsName}.`, {
      hint: 'the file is damaged or was changed; copy it again',
    })
}

function keysOf(keyFile: string | null): KeyObject[] {
  if (keyFile === null)
    return releaseKeys.map((x) => createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } }))
  const pem = read(keyFile)
  try {
    return [createPublicKey(pem)]
  } catch {
    throw new AppError('conflict', `${keyFile} is not a public key in PEM.`)
  }
}

function isSigned(sums: Uint8Array, path: string, keys: KeyObject[]): boolean {
  if (!existsSync(path)) return false
  const signature = read(path)
  return keys.some((key) => key.asymmetricKeyType === 'ed25519' && verify(null, sums, key, signature))
}

function whyUnsigned(sumsPath: string, keyFile: string | null): string {
  if (!existsSync(sumsPath)) return `${sumsName} is missing`
  if (!existsSync(`${sumsPath}.sig`)) return `${sumsName} is not signed`
  return `${sumsName} is not signed with ${keyFile === null ? 'a release key' : `the key in ${keyFile}`}`
}

function unpacked(bytes: Buffer<ArrayBuffer>, name: string): Uint8Array {
  if (!name.endsWith('.gz')) return bytes
  try {
    return Bun.gunzipSync(bytes)
  } catch {
    throw new AppError('conflict', `${name} is not a gzip file.`)
  }
}
