/** Reports failures of a node's background work to its log, and says in a sentence how it is. */
import { elapsedMs, type Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Upkeep } from '../../../db/contract/nodes.ts'

const logEveryMs = 60_000

/** A run that the next one makes good, as while the database restarts, is no problem for an operator. */
const failingMsMax = 5_000

/** A run over a large backlog takes seconds. */
const silentMsMax = 120_000

/** Call every few seconds. Logs a kind of failure at most once per minute. */
export function makeUpkeepWatch(
  store: Pick<Store, 'behind'>,
  clock: Clock,
  log: Pick<Log, 'error'>,
): () => void {
  const loggedMs = new Map<string, number>() // by kind, in `elapsedMs`
  let loggedFailures = 0
  return () => {
    const upkeep = store.behind()?.upkeep ?? null
    if (upkeep === null || upkeep.lastFailure === null || upkeep.failures === loggedFailures) return
    loggedFailures = upkeep.failures
    const { kind, message } = upkeep.lastFailure
    const nowMs = elapsedMs(clock)
    if (nowMs - (loggedMs.get(kind) ?? -Infinity) < logEveryMs) return
    loggedMs.set(kind, nowMs)
    log.error('upkeep_failed', { kind, message, failures: upkeep.failures })
  }
}

/** What is wrong with the background work, for an operator; null when nothing is. */
export function upkeepProblem(upkeep: Upkeep | null): string | null {
  if (upkeep === null) return null
  const { failingMs, lastFailure, ageMs } = upkeep
  if (failingMs !== null && failingMs > failingMsMax && lastFailure !== null)
    return `background work has failed for ${seconds(failingMs)} (${lastFailure.kind}): ${lastFailure.message}`
  return ageMs > silentMsMax ? `background work has been running for ${seconds(ageMs)}` : null
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`
}
