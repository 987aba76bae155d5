/** Both platforms return the same results. */
import { expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { isoTime } from './clock.ts'
import { byteLength, edgePlatform } from './edge-platform.ts'
import { nodePlatform } from './node-platform.ts'

test('law: byte lengths are UTF-8', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(byteLength(text)).toBe(Buffer.byteLength(text))
      expect(nodePlatform.byteLength(text)).toBe(Buffer.byteLength(text))
    }),
  )
  expect(byteLength('\ud800x\udc00')).toBe(7)
})

test.each([
  ['node', nodePlatform],
  ['edge', edgePlatform],
])('%s: gzip and ids', async (_, platform) => {
  const bytes = new TextEncoder().encode('{"events":[]}'.repeat(100))
  const compressed = await platform.gzip(bytes)
  expect(compressed.length).toBeLessThan(bytes.length / 4)
  expect(new Uint8Array(gunzipSync(compressed))).toEqual(bytes)
  expect(platform.sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  expect(platform.uuid()).toMatch(/^[0-9a-f-]{36}$/)
})

test('law: both platforms hash alike, also at block boundaries', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      const wellFormed = text.toWellFormed() // what UTF-8 can say
      expect(edgePlatform.sha256(wellFormed)).toBe(nodePlatform.sha256(wellFormed))
    }),
  )
  for (let length = 50; length < 130; length++) {
    expect(edgePlatform.sha256('a'.repeat(length))).toBe(nodePlatform.sha256('a'.repeat(length)))
  }
})

test('law: the cached time text is always correct', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4 })), (steps) => {
      for (const ms of steps) expect(isoTime(ms)).toBe(new Date(ms).toISOString())
    }),
  )
})
