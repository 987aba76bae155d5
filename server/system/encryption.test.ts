/** The key file is created once, private and complete; secrets and cursors decrypt only for their purpose and key. */
import fc from 'fast-check'
import { expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { keyFileName, lazySecretBox, makeCipher, openSecretBox } from './encryption.ts'

test('secrets decrypt after a restart, for their purpose only', () => {
  using folder = tempDir('secrets')
  const encrypted = openSecretBox(folder.path).encrypt('endpoint:ep_1', 'whsec_geheim')
  const later = openSecretBox(folder.path)
  expect(later.decrypt('endpoint:ep_1', encrypted)).toBe('whsec_geheim')
  expect(() => later.decrypt('endpoint:ep_2', encrypted)).toThrow()
  expect(() => later.decrypt('endpoint:ep_1', `${encrypted.slice(0, -2)}AA`)).toThrow()
  expect(encrypted).not.toContain('geheim')
})

test('the same secret encrypts differently each time', () => {
  using folder = tempDir('secrets')
  const box = openSecretBox(folder.path)
  expect(box.encrypt('p', 's')).not.toBe(box.encrypt('p', 's'))
})

test('the key file is accessible to its owner only, also after its mode was changed', () => {
  using folder = tempDir('secrets')
  const path = folder.join(keyFileName)
  openSecretBox(folder.path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(path, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
  chmodSync(path, 0o644)
  openSecretBox(folder.path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('a lazy box creates its key file on first use', () => {
  using folder = tempDir('secrets')
  const box = lazySecretBox(folder.path)
  expect(existsSync(folder.join(keyFileName))).toBe(false)
  expect(openSecretBox(folder.path).decrypt('p', box.encrypt('p', 's'))).toBe('s')
})

test('another key and a corrupt key file have distinct errors', () => {
  using firstFolder = tempDir('secrets')
  using secondFolder = tempDir('secrets')
  const encrypted = openSecretBox(firstFolder.path).encrypt('p', 's')
  expect(() => openSecretBox(secondFolder.path).decrypt('p', encrypted)).toThrow(/is encrypted with the key/)
  writeFileSync(firstFolder.join(keyFileName), 'abc')
  expect(() => openSecretBox(firstFolder.path)).toThrow(/is corrupt/)
})

const cipher = makeCipher('ab'.repeat(32))

test('decrypts only for the same purpose and with the same secret', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = cipher.encrypt('cursor', value)
      expect(text).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(cipher.decrypt('cursor', text)).toEqual(JSON.parse(JSON.stringify(value)))
      expect(cipher.decrypt('other', text)).toBeNull()
      expect(makeCipher('cd'.repeat(32)).decrypt('cursor', text)).toBeNull()
    }),
    { numRuns: 50 },
  )
})

test('decrypts the shortest value', () => {
  expect(cipher.decrypt('cursor', cipher.encrypt('cursor', 0))).toBe(0)
})

test('rejects every altered or foreign text without throwing', () => {
  const text = cipher.encrypt('cursor', ['org_1', 5])
  for (let index = 0; index < text.length; index++) {
    const otherLetter = text[index] === 'A' ? 'B' : 'A'
    const altered = text.slice(0, index) + otherLetter + text.slice(index + 1)
    // The last character carries bits that base64url ignores: the same bytes may come out.
    if (!Buffer.from(altered, 'base64url').equals(Buffer.from(text, 'base64url'))) {
      expect(cipher.decrypt('cursor', altered)).toBeNull()
    }
  }
  fc.assert(fc.property(fc.string(), (junk) => cipher.decrypt('cursor', junk) === null))
  expect(cipher.decrypt('cursor', 'A'.repeat(100))).toBeNull()
})
