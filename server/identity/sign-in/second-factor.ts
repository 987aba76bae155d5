/**
 * The second factor: TOTP codes of an authenticator app (RFC 6238), recovery codes, and the sign-ins that wait for one.
 */
import { Secret, TOTP } from 'otpauth'
import { newBase32, newToken, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { elapsedMs, type Clock } from '../../clock.ts'
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

/**
 * Sign-ins between the password and the code. They exist in this process only, so nothing in a backup can forge one.
 * Each is valid for five minutes and one sign-in.
 */
export interface HalfSignIns {
  /** Returns a token that proves the verified password. */
  begin(who: Who): string
  find(token: string): Who | null
  /** Reserves a token for one sign-in; false when another one holds it. */
  hold(token: string): boolean
  release(token: string): void
}

const perAccountMax = 8
const allMax = 10_000

export function makeHalfSignIns(clock: Clock): HalfSignIns {
  const halves = new Map<string, { who: Who; untilMs: number; held: boolean }>() // by hash, oldest first
  const live = (token: string) => {
    const half = halves.get(sha256Hex(token))
    return half !== undefined && !half.held && half.untilMs > elapsedMs(clock) ? half : null
  }
  return {
    begin(who) {
      const nowMs = elapsedMs(clock)
      for (const [hash, { untilMs }] of halves) {
        if (untilMs > nowMs && halves.size < allMax) break
        halves.delete(hash)
      }
      const own = [...halves].filter(([, half]) => half.who.accountId === who.accountId)
      for (const [hash] of own.slice(0, Math.max(0, own.length - perAccountMax + 1))) halves.delete(hash)
      const token = newToken()
      halves.set(sha256Hex(token), { who, untilMs: nowMs + limits.secondFactorMs, held: false })
      return token
    },
    find: (token) => live(token)?.who ?? null,
    hold(token) {
      const half = live(token)
      if (half === null) return false
      half.held = true
      return true
    },
    release(token) {
      const half = halves.get(sha256Hex(token))
      if (half !== undefined) half.held = false
    },
  }
}
