/** The hourly re-count: hours that have ended are counted again from their events; rollups that differ are repaired. */
import type { RecountProgress, Store } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import type { Log } from '../../log.ts'

const hourMs = 3_600_000

/** When the clock stood in the future and came back, hours it called over had not ended: they are counted again. */
const againMs = 48 * hourMs

/** Time after which a run ends; the next one goes on where it stopped. */
const runMsMax = 10 * 60_000

/** Hours between two notes of how far it has come: a note is a commit. */
const hoursPerNote = 24

/** Rollups of older hours are dropped by retention. */
const backMs = 400 * 24 * hourMs

export interface Recount {
  /** Throws once `ending` is aborted, and the hour at hand is the next run's. */
  run(now: number, ending: AbortSignal): Promise<void>
  /** Rollup rows found wrong since the process started; expected: 0. */
  repaired(): number
}

function startOf(known: RecountProgress | null, untilMs: number): number {
  if (known === null) return 0
  return known.throughMs > untilMs ? untilMs - againMs : known.throughMs
}

interface End {
  deadline: number
  ended: Promise<never> // an hour of a hundred million events takes minutes, and a stop does not wait for it
}

function rejectedBy(ending: AbortSignal): Promise<never> {
  const ended = new Promise<never>((_, reject) => {
    ending.addEventListener('abort', () => reject(ending.reason as Error), { once: true })
  })
  ended.catch(() => {}) // of a run that has come to its end before
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

  async function recountOrg(orgId: string, now: number, { deadline, ended }: End): Promise<void> {
    const untilMs = Math.floor(now / hourMs) * hourMs
    const known = await store.retention.recounted(orgId)
    const first = await store.retention.firstHour(orgId)
    if (first === null) return
    let hour = Math.max(first, untilMs - backMs, startOf(known, untilMs))
    let wrong = 0
    let sinceNote = 0
    const note = () => {
      const progress = { throughMs: hour, repaired: (known?.repaired ?? 0) + wrong }
      return store.retention.noteRecount({ orgId, ...progress })
    }
    for (; hour < untilMs && performance.now() < deadline; hour += hourMs) {
      const rows = await Promise.race([store.events.recount({ orgId, hourStartMs: hour }), ended])
      if (rows > 0) {
        log.error('rollup_repaired', { orgId, hour: isoTime(hour), rows })
        wrong += rows
        repaired += rows
      }
      if (++sinceNote % hoursPerNote === 0) await note()
    }
    if (sinceNote > 0 && hour !== known?.throughMs) await note()
  }

  return {
    repaired: () => repaired,
    async run(now, ending) {
      const end = { deadline: performance.now() + runMsMax, ended: rejectedBy(ending) }
      for (const { id } of await store.orgs.list()) await recountOrg(id, now, end)
    },
  }
}
