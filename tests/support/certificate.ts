/** Makes certificates for one host name or address with node:crypto, for tests of TLS. */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'

interface KeyPair {
  publicKey: KeyObject
  privateKey: KeyObject
}

const newKeys = (): KeyPair => generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** PEM texts. Valid from yesterday to tomorrow. */
export function selfSigned(host: string): { key: string; cert: string } {
  const keys = newKeys()
  return {
    key: pemOfKey(keys),
    cert: certificate({ host, keys, issuer: host, signer: keys, isAuthority: true }),
  }
}

/** An authority that signs certificates of hosts. */
export function testAuthority(): { cert: string; issue(host: string): { key: string; cert: string } } {
  const issuer = 'test authority'
  const signer = newKeys()
  return {
    cert: certificate({ host: issuer, keys: signer, issuer, signer, isAuthority: true }),
    issue(host) {
      const keys = newKeys()
      return { key: pemOfKey(keys), cert: certificate({ host, keys, issuer, signer, isAuthority: false }) }
    },
  }
}

function pemOfKey({ privateKey }: KeyPair): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

interface CertificateOptions {
  host: string
  keys: KeyPair
  issuer: string
  signer: KeyPair
  isAuthority: boolean
}

function certificate({ host, keys, issuer, signer, isAuthority }: CertificateOptions): string {
  const name = (text: string) => sequence(set(sequence(oid(2, 5, 4, 3), der(0x0c, Buffer.from(text)))))
  const algorithm = sequence(oid(1, 2, 840, 10_045, 4, 3, 2)) // ECDSA with SHA-256
  const dayMs = 24 * 3_600_000
  const names = sequence(alternativeName(host))
  const authority = sequence(der(0x01, Buffer.from([0xff])))
  const basicConstraints = sequence(oid(2, 5, 29, 19), der(0x01, Buffer.from([0xff])), der(0x04, authority))
  const extensions = sequence(
    sequence(oid(2, 5, 29, 17), der(0x04, names)), // subjectAltName
    ...(isAuthority ? [basicConstraints] : []),
  )
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.from([isAuthority ? 1 : 2])),
    algorithm,
    name(issuer),
    sequence(time(Date.now() - dayMs), time(Date.now() + dayMs)),
    name(host),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  )
  const signature = sign('sha256', body, signer.privateKey)
  return pem(sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature]))))
}

/** A DNS name, or the bytes of an address: 127.0.0.1 or ::1. */
function alternativeName(host: string): Buffer {
  if (isIP(host) === 4) return der(0x87, Buffer.from(host.split('.').map(Number)))
  if (host === '::1') return der(0x87, Buffer.from([...Array<number>(15).fill(0), 1]))
  return der(0x82, Buffer.from(host))
}

/** One value of DER: tag, length, content. */
function der(tag: number, ...contents: Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content])
  // Strict readers accept the shortest form only.
  const length =
    content.length < 0x100 ? [0x81, content.length] : [0x82, content.length >> 8, content.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

const sequence = (...contents: Uint8Array[]) => der(0x30, ...contents)
const set = (...contents: Uint8Array[]) => der(0x31, ...contents)

function oid(first: number, second: number, ...arcs: number[]): Buffer {
  const base128 = (value: number): number[] => {
    const bytes = [value & 0x7f]
    for (let highBits = value >> 7; highBits > 0; highBits >>= 7) bytes.unshift((highBits & 0x7f) | 0x80)
    return bytes
  }
  return der(0x06, Buffer.from([first * 40 + second, ...arcs.flatMap(base128)]))
}

/** UTCTime: `YYMMDDHHMMSSZ`. */
function time(ms: number): Buffer {
  return der(
    0x17,
    Buffer.from(
      `${new Date(ms)
        .toISOString()
        .replace(/[-:T]|\..*/g, '')
        .slice(2)}Z`,
    ),
  )
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
