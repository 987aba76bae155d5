/** Through which doors events came of late, with whose keys, and who saw the addresses that were judged. */
import { keylessIds } from '../../db/contract/provenance.ts'
import type { Store } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'

export interface OpenDoor {
  door: string | null // null: stored before doors were recorded
  key: string | null // null: a file, a socket or the command line of this machine
  label: string | null // of the key; null: it was deleted
  observers: string[] // `appliance` or ids of keys; none where nothing was judged
  events: number
  lastAt: string
}

/** Of the newest events. */
export interface OpenDoors {
  rows: OpenDoor[] // most events first
  looked: number // events
  complete: boolean // they are all of the last week
}

const weekMs = 7 * 24 * 3_600_000
const eventsMax = 50_000
const rowsMax = 200

export async function openDoors(
  store: Pick<Store, 'events' | 'keys'>,
  orgId: string,
  nowMs: number,
): Promise<OpenDoors> {
  const [{ groups, events, complete }, keys] = await Promise.all([
    store.events.top({
      ...{ orgId, eventsMax, budgetMs: limits.topMsMax, filter: { sinceMs: nowMs - weekMs } },
      groups: [{ by: ['door', 'key', 'observedBy'], max: rowsMax }],
    }),
    store.keys.list({ orgId, kind: 'ingest' }),
  ])
  const labels = new Map(keys.map(({ id, label }) => [id, label]))
  const doors = new Map<string, OpenDoor>()
  for (const { values, count, lastMs } of groups[0]?.rows ?? []) {
    const [door = null, sender = null, observer = null] = values
    const key = sender === null || keylessIds.includes(sender) ? null : sender
    const name = JSON.stringify([door, key])
    const lastAt = isoTime(lastMs)
    const row = doors.get(name) ?? {
      ...{ door, key, label: key === null ? null : (labels.get(key) ?? null) },
      ...{ observers: [], events: 0, lastAt },
    }
    doors.set(name, row)
    row.events += count
    if (lastAt > row.lastAt) row.lastAt = lastAt
    if (observer !== null && !row.observers.includes(observer)) row.observers.push(observer)
  }
  return { rows: [...doors.values()].toSorted((a, b) => b.events - a.events), looked: events, complete }
}
