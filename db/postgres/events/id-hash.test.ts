/** The hash of an id is in the mark that either engine writes for it. */
import { expect, test } from 'bun:test'
import { eraseMarks, fingerprintOf, fingerprints, seedOf } from '../../sql/events/dedupe/fingerprints.ts'
import { hashOfStored, idHashes } from './id-hash.ts'

const seed = seedOf(Uint8Array.from({ length: 40 }, (_, index) => index * 7))

test('an erased id leads to the hash and to the fingerprint that it had', () => {
  const print = fingerprints(seed.ids)
  const hash = idHashes(seed)
  for (const id of ['"evt_1"', '"é 漢字"', `"${'x'.repeat(200)}"`, '""#']) {
    const mark = eraseMarks(seed.erased, print)(3, id)
    expect(hashOfStored(hash, 3, mark)).toBe(hash(3, id))
    expect(hash(3, id)).toMatch(/^[0-9a-f]{32}$/)
    expect(fingerprintOf(mark, () => 0)).toBe(print(3, id))
  }
  expect(hash(0xabc, '"evt_1"')).toMatch(/^0abc/)
  expect(hash(3, '"evt_1"').slice(4)).not.toBe(hash(4, '"evt_1"').slice(4))
  expect(hashOfStored(hash, 3, '""')).toBeNull()
})
