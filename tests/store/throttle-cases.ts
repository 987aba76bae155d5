/** Conformance of the throttle of sign-ins: guesses count together, whichever node gets them. */
import { expect } from 'bun:test'
import type { AttemptName } from '../../db/contract/throttle.ts'
import type { Store } from '../../db/contract/store.ts'
import type { AttemptOutcome } from '../../db/contract/throttle.ts'
import { noon } from './make.ts'
import type { Cases, NodeCases } from './subject.ts'

const freeTries = 3
const attemptNames = (...names: string[]): AttemptName[] =>
  names.map((name) => ({ name, isSender: name.includes('sender'), refused: 0 }))
const begin = (store: Store, names: AttemptName[], now = noon) =>
  store.throttle.begin({ names, freeTries, now })
const end = (store: Store, names: AttemptName[], outcome: AttemptOutcome, now = noon) =>
  store.throttle.end({ names, outcome, freeTries, now })

/** Returns how the attempt began. */
async function attempt(store: Store, names: AttemptName[], outcome: AttemptOutcome, now = noon) {
  const { start } = await begin(store, names, now)
  if (start === 'begun') await end(store, names, outcome, now)
  return start
}

export const throttleCases: Cases = {
  async 'three attempts are free, then each failure doubles the wait'({ store, orgId }) {
    const names = attemptNames(orgId)
    const waits: number[] = []
    let now = noon
    for (let n = 0; n < 15; n++) {
      expect((await begin(store, names, now)).start).toBe('begun')
      const { states } = await end(store, names, 'wrong', now)
      waits.push(states[0]!.waitMs / 1_000)
      const { start, waitMs } = await begin(store, names, now + states[0]!.waitMs - 1)
      if (states[0]!.waitMs > 0) expect([start, waitMs]).toEqual(['refused', 1])
      else await end(store, names, 'none', now)
      now += states[0]!.waitMs
    }
    expect(waits).toEqual([0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900])
    await attempt(store, names, 'right', now)
    for (let n = 0; n < 3; n++) expect(await attempt(store, names, 'wrong', now)).toBe('begun')
    expect(await attempt(store, names, 'wrong', now)).toBe('refused')
  },
  async 'one of several names that waits refuses the attempt, and counts for none of the others'({
    store,
    orgId,
  }) {
    for (let n = 0; n < 3; n++) await attempt(store, attemptNames(`${orgId} a`), 'wrong')
    const { start, waitMs } = await begin(store, attemptNames(`${orgId} b`, `${orgId} a`))
    expect([start, waitMs]).toEqual(['refused', 1_000])
    for (let n = 0; n < 3; n++)
      expect(await attempt(store, attemptNames(`${orgId} b`), 'wrong')).toBe('begun')
  },
  async 'refused attempts are counted until the next failure, those that the caller refused included'({
    store,
    orgId,
  }) {
    const [name] = attemptNames(orgId)
    for (let n = 0; n < 3; n++) await attempt(store, [name!], 'wrong')
    for (let n = 0; n < 2; n++) await begin(store, [name!])
    await begin(store, [{ ...name!, refused: 4 }], noon + 1_000)
    expect((await end(store, [name!], 'wrong', noon + 1_000)).refusedBefore).toBe(6)
    await begin(store, [name!], noon + 3_000)
    expect((await end(store, [name!], 'wrong', noon + 3_000)).refusedBefore).toBe(0)
  },
  async 'a clock that is set back or forward neither locks out nor lets in'({ store, orgId }) {
    const names = attemptNames(orgId)
    for (let n = 0; n < 4; n++) await attempt(store, names, 'wrong', noon + n * 1_000)
    expect((await begin(store, names, noon - 86_400_000)).waitMs).toBe(2_000)
    expect((await begin(store, names, noon - 86_400_000 + 1_999)).start).toBe('refused')
    expect(await attempt(store, names, 'wrong', noon - 86_400_000 + 2_000)).toBe('begun')
  },
  async 'the oldest names are forgotten: idle ones, and senders apart from accounts beyond the limit'({
    store,
    orgId,
  }) {
    const laterMs = noon + 400 * 86_400_000 // later than any other case
    for (let n = 0; n < 8; n++) {
      for (let tries = 0; tries < 3; tries++)
        await attempt(store, attemptNames(`${orgId} sender ${n}`), 'wrong', laterMs + n)
      await attempt(store, attemptNames(`${orgId} ${n}`), 'wrong', laterMs + n)
    }
    const rowsMax = 5
    expect(await store.throttle.prune({ idleBeforeMs: 0, rowsMax })).toBeGreaterThanOrEqual(6)
    const starts = await Promise.all(
      [0, 2, 3, 7].map(
        async (n) => (await begin(store, attemptNames(`${orgId} sender ${n}`), laterMs + 8)).start,
      ),
    )
    expect(starts).toEqual(['begun', 'begun', 'refused', 'refused'])
    await store.throttle.prune({ idleBeforeMs: laterMs + 60_000, rowsMax })
    expect((await begin(store, attemptNames(`${orgId} sender 7`), laterMs + 9)).start).toBe('begun')
  },
}

export const throttleNodeCases: NodeCases = {
  async 'of guesses that are spread over two nodes at once three are checked'({ store, another, orgId }) {
    const names = attemptNames(`${orgId} account`, `${orgId} sender`)
    const guesses = Array.from({ length: 30 }, (_, n) => begin(n % 2 === 0 ? store : another, names))
    const starts = (await Promise.all(guesses)).map(({ start }) => start)
    expect(starts.filter((start) => start === 'begun').length).toBe(3)
    for (let n = 0; n < 3; n++) await end(n % 2 === 0 ? another : store, names, 'wrong')
    for (const node of [store, another]) expect((await begin(node, names)).start).toBe('refused')
  },
  async 'attempts wait for those of another node, and a correct one lets them begin'({
    store,
    another,
    orgId,
  }) {
    const names = attemptNames(orgId)
    for (let n = 0; n < 3; n++) expect((await begin(store, names)).start).toBe('begun')
    expect((await begin(another, names)).start).toBe('busy')
    await end(store, names, 'none')
    expect((await begin(another, names)).start).toBe('begun')
    await end(another, names, 'right')
    expect((await begin(another, names)).start).toBe('begun')
  },
  async 'attempts of a node that died have failed after a minute'({ store, another, orgId }) {
    const names = attemptNames(orgId)
    for (let n = 0; n < 3; n++) await begin(store, names)
    expect((await begin(another, names, noon + 59_999)).start).toBe('busy')
    expect(await begin(another, names, noon + 60_000)).toEqual({ start: 'refused', waitMs: 1_000 })
    expect((await begin(another, names, noon + 61_000)).start).toBe('begun')
  },
}
