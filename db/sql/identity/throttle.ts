/**
 * Attempts at signing in, by name. Rows are locked in the order of their names, so these verbs need no other lock and
 * strangers hold up no other writer.
 */
import {
  startAttempt,
  ended,
  settled,
  startOf,
  throttledMs,
  type ThrottleState,
} from '../../rules/sign-in-throttle.ts'
import type { AttemptName, ThrottleStore } from '../../contract/throttle.ts'
import type { Database } from '../database.ts'
import type { WriteContext } from '../contexts.ts'

const columns = `failures, refusals, running, running_until_ms AS runningUntilMs, until_ms AS untilMs`

/** Locks the row of a name until the transaction ends, and makes a missing one. */
function locked(db: Database, { name, isSender }: AttemptName, now: number): ThrottleState {
  return db
    .query<ThrottleState, [string, number, number]>(
      `INSERT INTO sign_in_throttle
         (name, is_sender, failures, refusals, running, running_until_ms, until_ms, last_at_ms)
       VALUES (?, ?, 0, 0, 0, 0, 0, ?)
       ON CONFLICT (name) DO UPDATE SET last_at_ms = excluded.last_at_ms
       RETURNING ${columns}`,
    )
    .get(name, isSender ? 1 : 0, now)!
}

function write(db: Database, name: string, state: ThrottleState): void {
  const { failures, refusals, running, runningUntilMs, untilMs } = state
  if (failures === 0 && running === 0) {
    db.query('DELETE FROM sign_in_throttle WHERE name = ?').run(name)
    return
  }
  db.query(
    `UPDATE sign_in_throttle SET failures = ?, refusals = ?, running = ?, running_until_ms = ?, until_ms = ?
     WHERE name = ?`,
  ).run(failures, refusals, running, runningUntilMs, untilMs, name)
}

const byName = (a: AttemptName, b: AttemptName): number => (a.name < b.name ? -1 : 1)

export function beginAttempt(
  { db }: WriteContext,
  { names, freeTries, now }: Parameters<ThrottleStore['begin']>[0],
): Awaited<ReturnType<ThrottleStore['begin']>> {
  const rows = names.toSorted(byName).map((attemptName) => {
    const state = settled(locked(db, attemptName, now), freeTries, now)
    return { ...attemptName, state: { ...state, refusals: state.refusals + attemptName.refused } }
  })
  const starts = rows.map(({ state }) => startOf(state, freeTries, now))
  const start = (['refused', 'busy'] as const).find((candidate) => starts.includes(candidate)) ?? 'begun'
  for (const { name, state } of rows) {
    if (start === 'begun') write(db, name, startAttempt(state, now))
    else write(db, name, { ...state, refusals: state.refusals + (start === 'refused' ? 1 : 0) })
  }
  return { start, waitMs: Math.max(...rows.map(({ state }) => throttledMs(state, freeTries, now))) }
}

export function endAttempt(
  { db }: WriteContext,
  { names, outcome, freeTries, now }: Parameters<ThrottleStore['end']>[0],
): Awaited<ReturnType<ThrottleStore['end']>> {
  let refusedBefore = 0
  const states: { [name: string]: { failures: number; waitMs: number } } = {}
  for (const { name, isSender, refused } of names.toSorted(byName)) {
    const previousState = locked(db, { name, isSender, refused }, now)
    refusedBefore = Math.max(refusedBefore, previousState.refusals + refused)
    const newState = ended(
      { ...previousState, refusals: previousState.refusals + refused },
      outcome,
      freeTries,
      now,
    )
    write(db, name, newState)
    states[name] = { failures: newState.failures, waitMs: throttledMs(newState, freeTries, now) }
  }
  return {
    refusedBefore: outcome === 'wrong' ? refusedBefore : 0,
    states: names.map(({ name }) => states[name]!),
  }
}

/** Oldest first; senders apart from accounts. Rows that an attempt has locked stay. */
export function pruneAttempts(
  { db }: WriteContext,
  { idleBeforeMs, rowsMax }: Parameters<ThrottleStore['prune']>[0],
): number {
  let deleted = 0
  for (const isSender of [0, 1]) {
    const oldest = db
      .query<{ atMs: number }, [number, number]>(
        `SELECT last_at_ms AS atMs FROM sign_in_throttle WHERE is_sender = ?
         ORDER BY last_at_ms DESC LIMIT 1 OFFSET ?`,
      )
      .get(isSender, rowsMax)
    const beforeMs = Math.max(idleBeforeMs, (oldest?.atMs ?? -1) + 1)
    deleted += db
      .query(
        `DELETE FROM sign_in_throttle WHERE name IN (
           SELECT name FROM sign_in_throttle WHERE is_sender = ? AND last_at_ms < ? ${db.dialect.skipLocked})`,
      )
      .run(isSender, beforeMs).changes
  }
  return deleted
}
