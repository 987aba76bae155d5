/**
 * Sign-ins between the password and the code. They exist in this process only, so nothing in a backup can forge one.
 * Each is valid for five minutes and one sign-in.
 */
import { elapsedMs, type Clock } from '../../clock.ts'
import { newToken, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'

export interface Who {
  accountId: string
  orgId: string
  email: string
  passwordHash: string // that was verified; the sign-in requires that it is unchanged
}

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
