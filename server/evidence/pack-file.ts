/** Reads and signs files with an evidence pack: size, form, the digest of each list, and who signed the file. */
import { createHash, createPublicKey, sign, verify, type KeyObject } from 'node:crypto'
import { packLimits, PackError, readPack, type EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { releaseKeys, signedText } from '../../sdk/judge/pack-signature.ts'
import { AppError } from '../errors.ts'
import { nestsDeeperThan } from '../text/json-scan.ts'
import { cutChars } from '../text/text.ts'

/** How far a file is signed. Only `valid` needs nobody's trust. */
export type PackSignature = 'valid' | 'missing' | 'unknown_key' | 'wrong'

export interface PackFile {
  pack: EvidencePack
  digest: string // of the whole document without `signature`, hex
  signature: PackSignature
  signedBy: string | null // the release's key, when the signature is valid
}

/** Throws an AppError that names what is wrong. */
export function readPackFile(text: string, keys: readonly string[] = releaseKeys): PackFile {
  if (Buffer.byteLength(text) > packLimits.bytesMax)
    throw new AppError('payload_too_large', 'An evidence pack has at most 8 MiB.')
  const { signature, ...document } = parse(text)
  const digest = digestOf(document)
  let pack: EvidencePack
  try {
    pack = readPack(document)
    checkDigests(pack)
  } catch (error) {
    if (!(error instanceof PackError)) throw error
    throw notPack(cutChars(error.message, 300))
  }
  const packSignature = signature as { key?: unknown; value?: unknown } | null | undefined
  const state = signatureState(packSignature, digest, keys)
  return { pack, digest, signature: state, signedBy: state === 'valid' ? String(packSignature?.key) : null }
}

const depthMax = 16 // a key of a directory is at 5

function parse(text: string): { [field: string]: unknown } {
  if (nestsDeeperThan(text, depthMax)) throw notPack('the file nests too deeply')
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw notPack('the file is not JSON')
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw notPack('the file has no JSON object')
  return document as { [field: string]: unknown }
}

function notPack(problem: string): AppError {
  return new AppError('invalid_body', `This is not a valid evidence pack: ${problem}.`, {
    issues: [{ path: '', code: 'wrong_format', message: problem }],
  })
}

/** What the digest of an entry covers. */
function factsOf(entry: EvidencePack['lists' | 'hosts' | 'directories' | 'tokens'][number]): unknown {
  if ('networks' in entry) return entry.networks
  if ('hostNames' in entry) return entry.hostNames
  return 'keys' in entry ? entry.keys : entry.tokens
}

function checkDigests({ lists, hosts, directories, tokens }: EvidencePack): void {
  for (const entry of [...lists, ...hosts, ...directories, ...tokens]) {
    if (digestOf(factsOf(entry)) !== entry.digest)
      throw new PackError(`the digest of ${'list' in entry ? entry.list : entry.operator} is wrong`)
  }
}

/** SHA-256 of compact JSON, hex. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

function signatureState(
  signature: { key?: unknown; value?: unknown } | null | undefined,
  digest: string,
  keys: readonly string[],
): PackSignature {
  if (typeof signature !== 'object' || signature === null) return 'missing'
  const { key, value } = signature
  if (typeof key !== 'string' || typeof value !== 'string') return 'wrong'
  if (!keys.includes(key)) return 'unknown_key'
  const publicKey = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: key } })
  return verify(null, Buffer.from(signedText(digest)), publicKey, Buffer.from(value, 'base64url'))
    ? 'valid'
    : 'wrong'
}

/** The text of a file with fresh digests, signed when a private key is given. */
export function packFileText(pack: EvidencePack, key: KeyObject | null): string {
  const withDigest = <T extends Parameters<typeof factsOf>[0]>(entry: T): T => ({
    ...entry,
    digest: digestOf(factsOf(entry)),
  })
  const document = {
    ...pack,
    lists: pack.lists.map(withDigest),
    hosts: pack.hosts.map(withDigest),
    directories: pack.directories.map(withDigest),
    tokens: pack.tokens.map(withDigest),
  }
  if (key === null) return `${JSON.stringify(document, null, 2)}\n`
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  const value = sign(null, Buffer.from(signedText(digestOf(document))), key).toString('base64url')
  return `${JSON.stringify({ ...document, signature: { key: x, value } }, null, 2)}\n`
}
