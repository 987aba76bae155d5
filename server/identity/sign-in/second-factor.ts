/** The second factor: TOTP codes of an authenticator app (RFC 6238) and recovery codes. */
import { Secret, TOTP } from 'otpauth'
import type { Proof, SecondFactor } from '../../../db/contract/store.ts'
import { newBase32, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'

export const seedPurpose = 'totp-seed'

const periodS = 30
const windowSteps = 1 // clocks differ, so the previous and the next code are valid too

/** A new seed (160 bits, base32) and the address that authenticator apps read. */
export function newSeed(email: string): { seed: string; uri: string } {
  const seed = newBase32(32)
  return { seed, uri: totp(seed, email).toString() }
}

/** The 30-second step whose code this is, or null. */
export function stepOf(seed: string, code: string, now: number): number | null {
  if (!/^\d{6}$/.test(code)) return null
  const delta = totp(seed, '').validate({ token: code, timestamp: now, window: windowSteps })
  return delta === null ? null : Math.floor(now / (periodS * 1000)) + delta
}

/** Reads a typed code as a TOTP or recovery code, in any spelling; null for neither. */
export function proofOf(factor: SecondFactor, seed: string, typed: string, now: number): Proof | null {
  const text = typed.replace(/[\s-]/g, '').toUpperCase()
  const step = stepOf(seed, text, now)
  if (step !== null) return step > factor.lastStep ? { step } : null
  return /^[A-Z2-7]{16}$/.test(text) ? { recoveryHash: sha256Hex(text) } : null
}

/** Codes of 80 bits, each valid once; only their hashes are stored. */
export function newRecoveryCodes(): { codes: string[]; hashes: string[] } {
  const plain = Array.from({ length: limits.recoveryCodes }, () => newBase32(16))
  return { codes: plain.map((code) => code.replace(/(.{4})(?=.)/g, '$1-')), hashes: plain.map(sha256Hex) }
}

function totp(seed: string, label: string): TOTP {
  const secret = Secret.fromBase32(seed)
  return new TOTP({ issuer: 'Sightglass', label, algorithm: 'SHA1', digits: 6, period: periodS, secret })
}
