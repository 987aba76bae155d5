/** The rule that throttles guessing: after the free tries a name waits 1 s, doubling with each failure to 15 min. */
import type { AttemptOutcome, AttemptStart } from '../contract/throttle.ts'

/** What is known of a name. Times are those of the store's clock. */
export interface ThrottleState {
  failures: number
  refusals: number // since the last failure
  running: number // attempts without an outcome
  runningUntilMs: number // by then a running attempt has ended or its process has
  untilMs: number // no attempt before
}

export const noAttempts: ThrottleState = {
  failures: 0,
  refusals: 0,
  running: 0,
  runningUntilMs: 0,
  untilMs: 0,
}

const stepMs = 1_000
const waitMsMax = 15 * 60_000
/** Longer than any check of a password takes. */
const runningMsMax = 60_000

function waitAfter(failures: number, freeTries: number): number {
  const excess = failures - freeTries
  return excess < 0 ? 0 : Math.min(waitMsMax, stepMs * 2 ** Math.min(excess, 20))
}

/** How long the name must wait. A clock that was set back does not prolong it. */
export function throttledMs({ untilMs, failures }: ThrottleState, freeTries: number, now: number): number {
  return Math.min(Math.max(0, untilMs - now), waitAfter(failures, freeTries))
}

/** Running attempts whose process ended without an outcome have failed, because it is unknown what they found out. */
export function settled(state: ThrottleState, freeTries: number, now: number): ThrottleState {
  const isOver =
    state.running > 0 && (state.runningUntilMs <= now || state.runningUntilMs > now + runningMsMax)
  const counted = isOver ? { ...state, running: 0, failures: state.failures + state.running } : state
  const wait = waitAfter(counted.failures, freeTries)
  if (isOver)
    return { ...counted, untilMs: Math.max(state.untilMs, Math.min(now, state.runningUntilMs) + wait) }
  return counted.untilMs > now + wait ? { ...counted, untilMs: now + wait } : counted
}

/** Of a settled state: after the free tries, one attempt at a time. */
export function startOf(state: ThrottleState, freeTries: number, now: number): AttemptStart {
  if (throttledMs(state, freeTries, now) > 0) return 'refused'
  return state.running < Math.max(1, freeTries - state.failures) ? 'begun' : 'busy'
}

export function startAttempt(state: ThrottleState, now: number): ThrottleState {
  return { ...state, running: state.running + 1, runningUntilMs: now + runningMsMax }
}

/** `none`: the attempt was not checked and counts as neither success nor failure. */
export function ended(
  state: ThrottleState,
  outcome: AttemptOutcome,
  freeTries: number,
  now: number,
): ThrottleState {
  const running = Math.max(0, state.running - 1)
  if (outcome === 'none') return { ...state, running }
  if (outcome === 'right') return { ...noAttempts, running, runningUntilMs: state.runningUntilMs }
  const failures = state.failures + 1
  const untilMs = Math.max(state.untilMs, now + waitAfter(failures, freeTries))
  return { ...state, running, failures, refusals: 0, untilMs: failures < freeTries ? 0 : untilMs }
}
