/**
 * The second factor: TOTP codes of an authenticator app (RFC 6238), recovery codes, and the sign-ins that wait for one.
 */
import { Secret, TOTP } from 'otpauth'
import { newBase32, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { Proof, SecondFactor } from '../../../db/contract/store.ts'

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

/** A person whose password was verified. */
export interface Who {
  accountId: string
  orgId: string
  email: string
  passwordHash: string // that was verified; the sign-in requires that it is unchanged
}

/** What a token proves: the password of an account, by the digest of its hash. */
interface HalfSignIn {
  accountId: string
  orgId: string
  passwordDigest: string
}

/**
 * Sign-ins between the password and the code: encrypted tokens, so any node that has the key accepts what another one
 * began. The key is never in a backup. Each is valid for five minutes and one sign-in; another node would accept it
 * again, with another code.
 */
export interface HalfSignIns {
  /** Returns a token that proves the verified password. */
  begin(member: Who): string
  find(token: string): HalfSignIn | null
  /** Reserves a token for one sign-in; false when another one holds it. */
  hold(token: string): boolean
  release(token: string): void
}

const halfPurpose = 'half-sign-in'
const heldMax = 10_000

/** `nowMs` is a clock that all nodes with the key share. */
export function makeHalfSignIns(cipher: Cipher, nowMs: () => number): HalfSignIns {
  const heldTokens = new Map<string, number>() // until when, by the token's hash, oldest first
  const read = (token: string): (HalfSignIn & { untilMs: number }) | null => {
    const half = cipher.decrypt(halfPurpose, token) as (HalfSignIn & { untilMs: number }) | null
    return half !== null && half.untilMs > nowMs() ? half : null
  }
  return {
    begin({ accountId, orgId, passwordHash }) {
      const half = { accountId, orgId, passwordDigest: sha256Hex(passwordHash) }
      return cipher.encrypt(halfPurpose, { ...half, untilMs: nowMs() + limits.secondFactorMs })
    },
    find: (token) => (heldTokens.has(sha256Hex(token)) ? null : read(token)),
    hold(token) {
      const half = read(token)
      const hash = sha256Hex(token)
      if (half === null || heldTokens.has(hash)) return false
      for (const [old, untilMs] of heldTokens) {
        if (untilMs > nowMs() && heldTokens.size < heldMax) break
        heldTokens.delete(old)
      }
      heldTokens.set(hash, half.untilMs)
      return true
    },
    release: (token) => void heldTokens.delete(sha256Hex(token)),
  }
}
