/** The store's interface for attempts at signing in, which are counted before each check. */

export type AttemptOutcome = 'right' | 'wrong' | 'none'

/** An attempt waits for running ones that could use up the free tries. */
export type AttemptStart = 'begun' | 'busy' | 'refused'

/** An account or a sender that guesses are counted for. */
export interface AttemptName {
  name: string // hashed: people type passwords into the wrong field
  isSender: boolean // senders are bounded apart, so that a flood of them forgets no account
  refused: number // attempts that the caller refused by itself since its last call
}

/**
 * Counts attempts at signing in (`../rules/sign-in-throttle.ts`), so that guesses spread over nodes or restarts count
 * together. `now` is the store's time: of a clock that neither jumps nor differs between nodes.
 */
export interface ThrottleStore {
  /**
   * Counts an attempt and says whether it may be checked: `refused` while a name waits, `busy` while running attempts
   * could use up the free tries. A running attempt without an outcome has failed after a minute.
   */
  begin(command: {
    names: AttemptName[]
    freeTries: number
    now: number
  }): Promise<{ start: AttemptStart; waitMs: number }>
  /**
   * Records the outcome of an attempt that has begun. `refusedBefore` counts the refused attempts since the last
   * failure when this is one; `states` is in the order of the names.
   */
  end(command: {
    names: AttemptName[]
    outcome: AttemptOutcome
    freeTries: number
    now: number
  }): Promise<{ refusedBefore: number; states: { failures: number; waitMs: number }[] }>
  /** Deletes names without an attempt since `idleBeforeMs`, and the oldest beyond `rowsMax`. Returns how many. */
  prune(command: { idleBeforeMs: number; rowsMax: number }): Promise<number>
}
