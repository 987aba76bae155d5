/**
 * One round of kill -9 during retention, erasure and page release beside ingest. Acknowledged events within retention
 * must be known and stored once, and `verify` must find no fault.
 */
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { makeBatch, noon } from '../store/make.ts'
import { crashEvent, orgId } from './engine-events.ts'
import { batchEvents, batchesKept, receivedAtMs } from './engine-deleted.ts'
import { killAfter, startProgram, wholeLines, type Found, type Round } from './round.ts'

/** `takenCount`: how many events the program had deleted, as far as it could say so. */
export async function takingRound(round: Round): Promise<Found & { taken: number }> {
  const { folder, number, killAfterMs } = round
  const child = startProgram('engine-deleter.ts', round, number)
  const hasBegun = (line: string) => (Number(line) >= batchEvents * batchesKept ? line : null)
  await child.line(hasBegun, 150_000) // slow at a low priority
  await child.line((line) => takenBy(line) || null, 150_000)
  await killAfter(child, killAfterMs)
  round.afterwards?.()
  const lines = wholeLines(child)
  const newest = Number(lines.findLast((line) => takenBy(line) === 0))
  const takenCount = lines.reduce((sum, line) => sum + takenBy(line), 0)

  const { orgs, faults } = await openDatabaseAdmin(folder).verifyEvents()
  const heldEvents = orgs[0]?.events ?? 0
  const faultTexts = faults.map(({ place, problem }) => `${place} ${problem}`)
  if (heldEvents >= batchEvents * batchesKept * 1.5)
    faultTexts.push(`${heldEvents} events outstayed retention`)
  faultTexts.push(
    ...(await openDatabaseAdmin(folder).verifyAudit()).faults.map(
      (fault) => `audit: ${JSON.stringify(fault)}`,
    ),
  )
  const store = await openStore({ folder, now: noon })
  const doubled = await doubles(store)
  let lost = 0
  let acknowledged = 0
  // Half of what remains: retention may have continued after the last printed acknowledgement.
  for (let first = newest - batchEvents * (batchesKept / 2); first <= newest; first += batchEvents) {
    const events = Array.from({ length: batchEvents }, (_, n) => crashEvent(number, first + n))
    const again = { ...makeBatch(orgId, events), receivedAtMs: receivedAtMs(number + 1) - 1 }
    lost += (await store.events.append(again)).accepted
    acknowledged += batchEvents
  }
  await store.close()
  return { acknowledged, lost, doubled, faults: faultTexts, taken: takenCount }
}

/** Of a line like `taken 500`; others are the first event of an acknowledged batch. */
function takenBy(line: string): number {
  return line.startsWith('taken ') ? Number(line.slice(6)) : 0
}

async function doubles(store: Store): Promise<number> {
  const { events } = await store.events.tail({ orgId, filter: {}, afterSeq: 0, limit: 100_000 })
  return events.length - new Set(events.map(({ json }) => (JSON.parse(json) as { id: string }).id)).size
}
