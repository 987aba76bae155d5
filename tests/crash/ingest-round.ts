/**
 * One round of kill -9 while a process appends as fast as it can, through id runs, merges, seals and folds.
 * Acknowledged batches must be stored once, others completely or not at all.
 */
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { makeBatch, noon } from '../store/make.ts'
import { crashEvent, orgId } from './engine-events.ts'
import { killAfter, startProgram, wholeLines, type Found, type Round } from './round.ts'

const repeatedAtOnce = 16

/** `storedBefore`: events that earlier rounds stored in the folder. */
export async function ingestRound(
  round: Round,
  batchEvents: number,
  storedBefore: number,
): Promise<Found & { stored: number }> {
  const { folder, number, killAfterMs, restMs = 0 } = round
  const child = startProgram('engine-writer.ts', round, number, batchEvents, restMs)
  await child.line((line) => line, 40_000)
  await round.begun?.()
  await killAfter(child, killAfterMs)
  round.afterwards?.()
  const firsts = new Set(wholeLines(child).map((line) => Number(line.split(' ')[0])))
  const store = await openStore({ folder, now: noon })
  const end = Math.max(...firsts) + batchEvents * 8 // batches in flight are before it
  const faults: string[] = []
  let stored = storedBefore
  let lost = 0
  const repeat = async (first: number): Promise<void> => {
    const events = Array.from({ length: batchEvents }, (_, n) => crashEvent(number, first + n))
    const { accepted, deduped } = await store.events.append(makeBatch(orgId, events))
    if (deduped !== 0 && accepted !== 0) faults.push(`batch ${first} was stored by half`)
    if (firsts.has(first)) lost += accepted
    stored += accepted + deduped
  }
  // Several at once share a commit.
  for (let from = 0; from < end; from += batchEvents * repeatedAtOnce) {
    const to = Math.min(end, from + batchEvents * repeatedAtOnce)
    await Promise.all(
      Array.from({ length: (to - from) / batchEvents }, (_, n) => repeat(from + n * batchEvents)),
    )
  }
  const { total } = await store.events.overview(orgId)
  await store.close()
  const verdict = await openDatabaseAdmin(folder).verifyEvents()
  faults.push(...verdict.faults.map(({ place, problem }) => `${place} ${problem}`))
  const heldEvents = verdict.orgs.reduce((sum, { events }) => sum + events, 0)
  if (heldEvents !== total) faults.push(`${heldEvents} events are held, ${total} are counted`)
  return { acknowledged: firsts.size * batchEvents, lost, doubled: heldEvents - stored, faults, stored }
}
