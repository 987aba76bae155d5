/** Codes of the second factor against the vectors of RFC 6238, and the spellings of a recovery code. */
import { expect, test } from 'bun:test'
import type { SecondFactor } from '../../../db/contract/store.ts'
import { sha256Hex } from '../../ids.ts'
import { newRecoveryCodes, newSeed, proofOf, stepOf } from './second-factor.ts'

// RFC 6238, appendix B: the ASCII seed 12345678901234567890, SHA-1; its eight digits end in our six.
const seed = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const vectors = [
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
] as const
const factor: SecondFactor = {
  accountId: 'usr_a',
  encryptedSeed: '',
  lastStep: 0,
  sinceMs: 0,
  recoveryLeft: 10,
}

test('RFC 6238 codes are valid in their own step, the previous and the next, and no others', () => {
  for (const [seconds, code] of vectors) {
    const step = Math.floor(seconds / 30)
    for (const [shift, expected] of [
      [0, step],
      [30, step],
      [-30, step],
      [61, null],
      [-61, null],
    ] as const)
      expect([seconds, shift, stepOf(seed, code, (seconds + shift) * 1000)]).toEqual([
        seconds,
        shift,
        expected,
      ])
  }
  for (const odd of ['', '12345', '1234567', '28708a', '٢٨٧٠٨٢', ' 287082'])
    expect(stepOf(seed, odd, 59_000)).toBeNull()
})

test('a used step is rejected', () => {
  expect(proofOf(factor, seed, '287 082', 59_000)).toEqual({ step: 1 })
  expect(proofOf({ ...factor, lastStep: 1 }, seed, '287082', 59_000)).toBeNull()
})

test('recovery codes are unique and accepted in any spelling', () => {
  const { codes, hashes } = newRecoveryCodes()
  expect([codes.length, new Set(codes).size]).toEqual([10, 10])
  const [first = ''] = codes
  expect(first).toMatch(/^[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$/)
  for (const spelling of [first, first.toLowerCase(), first.replaceAll('-', ' ')])
    expect(proofOf(factor, seed, spelling, 0)).toEqual({ recoveryHash: hashes[0]! })
  expect(hashes[0]).toBe(sha256Hex(first.replaceAll('-', '')))
  expect(proofOf(factor, seed, 'no code at all', 0)).toBeNull()
})

test('a new seed has 160 bits and a URL for authenticator apps', () => {
  const { seed, uri } = newSeed('ann@example.com')
  expect(seed).toMatch(/^[A-Z2-7]{32}$/)
  expect(uri).toBe(
    `otpauth://totp/Sightglass:ann%40example.com?issuer=Sightglass&secret=${seed}&algorithm=SHA1&digits=6&period=30`,
  )
})
