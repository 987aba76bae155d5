/**
 * Writes OpenPGP signatures (RFC 4880, version 4, Ed25519 as in RFC 9580 §5.2.3.3) with the key of a release, so that
 * gpg, rpm and debsig-verify can verify it.
 */
import { createHash, createPublicKey, sign, type KeyObject } from 'node:crypto'
import { modifiedAt } from './archive.ts'

export interface OpenPgpKey {
  /** 40 hexadecimal digits. */
  fingerprint: string
  /** The public key with its name, in ASCII armour. */
  publicKey: string
  /** A detached signature of the bytes, as a packet. */
  sign(...data: Uint8Array[]): Uint8Array
}

const eddsa = 22
const sha256 = 8
const ed25519 = Buffer.from('092b06010401da470f01', 'hex') // its object identifier, after the length
const tags = { signature: 2, publicKey: 6, userId: 13 }
const signatureTypes = { binary: 0x00, certification: 0x13 }
const subpackets = { created: 2, issuer: 16, keyFlags: 27, issuerFingerprint: 33 }
const mayCertifyAndSign = 3

/** The same key and bytes give the same signature: its time is that of the files in packages. */
export function openPgpKey(key: KeyObject, name: string): OpenPgpKey {
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('a release is signed with an Ed25519 key')
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  const point = Buffer.concat([Uint8Array.of(0x40), Buffer.from(x!, 'base64url')])
  const body = Buffer.concat([
    Uint8Array.of(4),
    uint32(modifiedAt),
    Uint8Array.of(eddsa),
    ed25519,
    mpi(point),
  ])
  const keyMaterial = Buffer.concat([Uint8Array.of(0x99), uint16(body.length), body])
  const fingerprint = createHash('sha1').update(keyMaterial).digest()

  /** `extraSubpackets`: subpackets beside those of every signature. */
  function signature(type: number, data: Uint8Array[], extraSubpackets: Uint8Array[] = []): Uint8Array {
    const hashed = Buffer.concat([
      subpacket(subpackets.created, uint32(modifiedAt)),
      subpacket(subpackets.issuerFingerprint, Buffer.concat([Uint8Array.of(4), fingerprint])),
      ...extraSubpackets,
    ])
    const head = Buffer.concat([Uint8Array.of(4, type, eddsa, sha256), uint16(hashed.length), hashed])
    const hash = createHash('sha256')
    for (const part of [...data, head, Uint8Array.of(4, 0xff), uint32(head.length)]) hash.update(part)
    const digest = hash.digest()
    const unhashed = subpacket(subpackets.issuer, fingerprint.subarray(-8))
    const signed = sign(null, digest, key)
    const numbers = [mpi(signed.subarray(0, 32)), mpi(signed.subarray(32))]
    const trailer = [uint16(unhashed.length), unhashed, digest.subarray(0, 2), ...numbers]
    return packet(tags.signature, Buffer.concat([head, ...trailer]))
  }

  const userId = Buffer.from(name)
  const certified = [keyMaterial, Uint8Array.of(0xb4), uint32(userId.length), userId]
  const flags = subpacket(subpackets.keyFlags, Uint8Array.of(mayCertifyAndSign))
  const publicKey = Buffer.concat([
    packet(tags.publicKey, body),
    packet(tags.userId, userId),
    signature(signatureTypes.certification, certified, [flags]),
  ])
  return {
    fingerprint: fingerprint.toString('hex').toUpperCase(),
    publicKey: armour('PUBLIC KEY BLOCK', publicKey),
    sign: (...data) => signature(signatureTypes.binary, data),
  }
}

function uint16(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 0xff)
}

function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A number of any size: its length in bits, then its bytes without leading zeros. */
function mpi(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0)
  const digits = first < 0 ? new Uint8Array() : bytes.subarray(first)
  const bits = digits.length === 0 ? 0 : digits.length * 8 - Math.clz32(digits[0]!) + 24
  return Buffer.concat([uint16(bits), digits])
}

function length(value: number): Uint8Array {
  if (value < 192) return Uint8Array.of(value)
  if (value < 8_384) return Uint8Array.of(((value - 192) >> 8) + 192, (value - 192) & 0xff)
  return Buffer.concat([Uint8Array.of(0xff), uint32(value)])
}

const packet = (tag: number, body: Uint8Array): Uint8Array =>
  Buffer.concat([Uint8Array.of(0xc0 | tag), length(body.length), body])

const subpacket = (type: number, content: Uint8Array): Uint8Array =>
  Buffer.concat([length(content.length + 1), Uint8Array.of(type), content])

export function armour(kind: 'PUBLIC KEY BLOCK' | 'SIGNATURE', bytes: Uint8Array): string {
  const base64 = (content: Uint8Array): string => Buffer.from(content).toString('base64')
  const lines = base64(bytes).match(/.{1,64}/g)!
  const sum = base64(uint32(crc24(bytes)).subarray(1))
  return [`-----BEGIN PGP ${kind}-----`, '', ...lines, `=${sum}`, `-----END PGP ${kind}-----`, ''].join('\n')
}

function crc24(bytes: Uint8Array): number {
  let crc = 0xb704ce
  for (const byte of bytes) {
    crc ^= byte << 16
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x800000 ? (crc << 1) ^ 0x1864cfb : crc << 1
  }
  return crc & 0xffffff
}
