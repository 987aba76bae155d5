/** The hourly recount: counts past hours again from their events, and repairs rollups that differ. */
import type { RecountProgress, Store } from '../../../db/contract/store.ts'
import type { JobLease } from '../../../db/contract/nodes.ts'
import { isoTime } from '../../clock.ts'
import type { Log } from '../../log.ts'
import { forEachOrg, orgIdsOf } from '../../system/steps.ts'
import { dayMs, hourMs } from '../../../db/contract/units.ts'
import { countsRetentionDays } from '../../../db/rules/retention-days.ts'

/** After a clock that was ahead is corrected, hours that seemed past were not: they are counted again. */
const againMs = 48 * hourMs

/** The time limit of a run; the next run continues. */
const runMsMax = 10 * 60_000

/** Hours between two saves of the position, because a save is a commit. */
const hoursPerNote = 24

/** Retention deletes the rollups of older hours. */
const backMs = countsRetentionDays * dayMs

export interface Recount {
  /** Throws once `ending` is aborted; the next run repeats the current hour. With `lease` only its holder repairs. */
  run(now: number, ending: AbortSignal, lease?: JobLease): Promise<void>
  /** Rollup rows repaired since the process started; expected: 0. */
  repaired(): number
}

function startOf(recountProgress: RecountProgress | null, untilMs: number): number {
  if (recountProgress === null) return 0
  return recountProgress.throughMs > untilMs ? untilMs - againMs : recountProgress.throughMs
}

interface Run {
  lease: JobLease | undefined
  deadline: number
  ended: Promise<never> // an hour of 100 million events takes minutes; a stop does not wait for it
}

function rejectedBy(ending: AbortSignal): Promise<never> {
  const ended = new Promise<never>((_, reject) => {
    ending.addEventListener('abort', () => reject(ending.reason as Error), { once: true })
  })
  ended.catch(() => {}) // the run may finish first
  return ended
}

export function makeRecount({
  store,
  log,
}: {
  store: Pick<Store, 'orgs' | 'events' | 'retention'>
  log: Log
}): Recount {
  let repaired = 0

  async function recountOrg(orgId: string, now: number, { lease, deadline, ended }: Run): Promise<void> {
    const untilMs = Math.floor(now / hourMs) * hourMs
    const lastProgress = await store.retention.recounted(orgId)
    const first = await store.retention.firstHour(orgId)
    if (first === null) return
    let hour = Math.max(first, untilMs - backMs, startOf(lastProgress, untilMs))
    let wrong = 0
    let sinceNote = 0
    const note = () => {
      const progress = { throughMs: hour, repaired: (lastProgress?.repaired ?? 0) + wrong }
      return store.retention.noteRecount({ orgId, ...progress })
    }
    for (; hour < untilMs && performance.now() < deadline; hour += hourMs) {
      const query = { orgId, hourStartMs: hour, ...(lease === undefined ? {} : { lease }) }
      const rows = await Promise.race([store.events.recount(query), ended])
      if (rows > 0) {
        log.error('rollup_repaired', { orgId, hour: isoTime(hour), rows })
        wrong += rows
        repaired += rows
      }
      if (++sinceNote % hoursPerNote === 0) await note()
    }
    if (sinceNote > 0 && hour !== lastProgress?.throughMs) await note()
  }

  return {
    repaired: () => repaired,
    async run(now, ending, lease) {
      const run = { lease, deadline: performance.now() + runMsMax, ended: rejectedBy(ending) }
      const failure = await forEachOrg(await orgIdsOf(store), (orgId) => recountOrg(orgId, now, run))
      if (failure !== null) throw failure
    },
  }
}
