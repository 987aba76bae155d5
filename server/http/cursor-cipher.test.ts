/** Encrypted positions: ours decrypt; altered and foreign ones do not. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { makeCursorCipher } from './cursor-cipher.ts'

const cipher = makeCursorCipher('ab'.repeat(32))

test('decrypts only for the same purpose and with the same secret', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = cipher.encrypt('cursor', value)
      expect(text).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(cipher.decrypt('cursor', text)).toEqual(JSON.parse(JSON.stringify(value)))
      expect(cipher.decrypt('other', text)).toBeNull()
      expect(makeCursorCipher('cd'.repeat(32)).decrypt('cursor', text)).toBeNull()
    }),
    { numRuns: 50 },
  )
})

test('decrypts the shortest value', () => {
  expect(cipher.decrypt('cursor', cipher.encrypt('cursor', 0))).toBe(0)
})

test('rejects every altered or foreign text without throwing', () => {
  const text = cipher.encrypt('cursor', ['org_1', 5])
  for (let at = 0; at < text.length; at++) {
    const other = text[at] === 'A' ? 'B' : 'A'
    const altered = text.slice(0, at) + other + text.slice(at + 1)
    // The last character carries bits that base64url ignores: the same bytes may come out.
    if (!Buffer.from(altered, 'base64url').equals(Buffer.from(text, 'base64url'))) {
      expect(cipher.decrypt('cursor', altered)).toBeNull()
    }
  }
  fc.assert(fc.property(fc.string(), (junk) => cipher.decrypt('cursor', junk) === null))
  expect(cipher.decrypt('cursor', 'A'.repeat(100))).toBeNull()
})
