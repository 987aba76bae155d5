/** A key ring is shared by nodes: the newest key encrypts, all decrypt, and every node signs with the same key. */
import { expect, test } from 'bun:test'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { isSoundHead, openSigningKey, ringSigningKey, signHead, trustedKeys } from '../audit/signing.ts'
import { keyFileName, openSecretBox } from './encryption.ts'
import { keyIdOf, readKeyRing } from './key-ring.ts'

const older = '11'.repeat(32)
const newer = '22'.repeat(32)

test('what one node encrypts another decrypts, before and after the key was replaced', () => {
  const keyBefore = readKeyRing(`${older}\n`)
  const after = readKeyRing(`# since May\n${newer}\n\n${older}\n`)
  using folder = tempDir('ring')
  const encrypted = openSecretBox(folder.path, keyBefore).encrypt('p', 's')
  expect(openSecretBox(folder.path, after).decrypt('p', encrypted)).toBe('s')
  const replaced = openSecretBox(folder.path, after).encrypt('p', 's')
  expect(replaced).toStartWith(`v1.${keyIdOf(Buffer.from(newer, 'hex'))}.`)
  expect(() => openSecretBox(folder.path, keyBefore).decrypt('p', replaced)).toThrow(
    /is encrypted with the key/,
  )
  expect(existsSync(folder.join(keyFileName))).toBe(false)
})

test('the files of a data folder, one after the other, make a ring with the same keys', () => {
  using folder = tempDir('ring')
  const encrypted = openSecretBox(folder.path).encrypt('p', 's')
  const { publicKey } = openSigningKey(folder.path)
  const text = [keyFileName, 'audit-signing.key']
    .map((name) => readFileSync(folder.join(name), 'utf8'))
    .join('')
  const ring = readKeyRing(text)
  expect(openSecretBox('/nowhere', ring).decrypt('p', encrypted)).toBe('s')
  expect(ringSigningKey(ring).publicKey).toBe(publicKey)
  // The same text works as the key file of a folder.
  writeFileSync(folder.join(keyFileName), text)
  expect(openSecretBox(folder.path).decrypt('p', encrypted)).toBe('s')
})

test('a key file with two keys encrypts with the first', () => {
  using folder = tempDir('ring')
  writeFileSync(folder.join(keyFileName), `${older}\n`)
  const encrypted = openSecretBox(folder.path).encrypt('p', 's')
  writeFileSync(folder.join(keyFileName), `${newer}\n`)
  appendFileSync(folder.join(keyFileName), `${older}\n`)
  expect(openSecretBox(folder.path).decrypt('p', encrypted)).toBe('s')
  expect(openSecretBox(folder.path).encrypt('p', 's')).toContain(keyIdOf(Buffer.from(newer, 'hex')))
})

test('without a signing key every node derives the same one, and older ones stay trusted', () => {
  const before = ringSigningKey(readKeyRing(older))
  const ring = readKeyRing(`${newer}\n${older}`)
  const head = signHead(ringSigningKey(ring), 'org_a', { count: 1, hash: 'ab' }, 0)
  expect(isSoundHead(head)).toBe(true)
  expect(ringSigningKey(readKeyRing(`${newer}\n${older}`)).publicKey).toBe(head.key)
  expect(head.key).not.toBe(before.publicKey)
  expect(trustedKeys('/nowhere', ring)).toEqual([head.key, before.publicKey])
  expect(trustedKeys('/nowhere', null)).toEqual([])
})

test('anything else is rejected without showing a part of it', () => {
  const pem = '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'
  for (const text of [
    '',
    '# empty',
    older.slice(1),
    `${older}\n${older}00`,
    `${older} ${newer}`,
    'zz'.repeat(32),
  ])
    expect(() => readKeyRing(text)).toThrow('it must contain keys of 32 bytes in hex, one per line')
  expect(() => readKeyRing(`${older}\n${pem}`)).toThrow('it contains a damaged signing key')
})
