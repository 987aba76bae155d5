/**
 * One round of kill -9 while a full segment is sealed, gets its path columns or is repacked beside ingest. Every event
 * of before must be there, and acknowledged batches once.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../db/open.ts'
import { segmentEvents } from '../../db/sql/events/blocks/block.ts'
import { openReaderConnection } from '../../db/sqlite/file/connection.ts'
import { makeBatch, noon } from '../store/make.ts'
import { crashEvent, orgId } from './engine-events.ts'
import { ingestRound } from './ingest-round.ts'
import type { Found, Round } from './round.ts'

/** What the writer does with the first segment, and how long that takes beside ingest. */
const phasesMs = { sealing: 300, 'path columns': 60, repacking: 900 }

export type Phase = keyof typeof phasesMs

const batchEvents = 250
/** The first segment is full after a few batches. */
const preparedBatches = Math.floor(segmentEvents / batchEvents) - 2
const preparedRound = -1
/** Between two batches of a sender: the writer repacks only while nobody waits. */
const restMs = 50
const phaseWithinMs = 120_000

/** A folder whose first segment is almost full; each round works on a copy of it. */
export async function prepareSegment(folder: string): Promise<void> {
  const store = await openStore({ folder, now: noon })
  for (let batch = 0; batch < preparedBatches; batch++) await store.events.append(preparedBatch(batch))
  await store.close()
}

function preparedBatch(batch: number) {
  const events = Array.from({ length: batchEvents }, (_, n) =>
    crashEvent(preparedRound, batch * batchEvents + n),
  )
  return makeBatch(orgId, events)
}

/** Kills once the phase was seen, after a part of its usual duration. `during`: the phase that the kill interrupted. */
export async function sealRound(
  round: Omit<Round, 'killAfterMs'>,
  prepared: string,
  randomBelow: (end: number) => number,
): Promise<Found & { during: Phase | 'other work' }> {
  const { folder, number, afterwards } = round
  cpSync(prepared, folder, { recursive: true })
  const phases = Object.keys(phasesMs) as Phase[]
  const targetPhase = phases[number % phases.length]!
  let killPhase: Phase | 'other work' = 'other work'
  const result = await ingestRound(
    {
      ...round,
      restMs,
      killAfterMs: randomBelow(phasesMs[targetPhase]),
      begun: () => reached(folder, targetPhase),
      afterwards() {
        afterwards?.()
        using db = openReaderConnection(join(folder, 'sightglass.db'))
        killPhase = phaseOf(db) ?? killPhase
      },
    },
    batchEvents,
    preparedBatches * batchEvents,
  )
  result.faults.push(...(await problemsOfPrepared(folder)))
  return { ...result, during: killPhase }
}

type Reader = ReturnType<typeof openReaderConnection>

function phaseOf(db: Reader): Phase | null {
  const sql = `SELECT segments, shredded, repacked,
    (SELECT max(place % (1 << 36) + events) FROM event_block) AS next FROM event_org`
  const { segments, shredded, repacked, next } = db
    .query<{ segments: number; shredded: number; repacked: number; next: number }, []>(sql)
    .get()!
  if (next >= segmentEvents && segments === 0) return 'sealing'
  if (shredded < segments) return 'path columns'
  return repacked < shredded ? 'repacking' : null
}

async function reached(folder: string, phase: Phase): Promise<void> {
  using db = openReaderConnection(join(folder, 'sightglass.db'))
  const order = [null, ...Object.keys(phasesMs)]
  for (const endMs = performance.now() + phaseWithinMs; performance.now() < endMs; await Bun.sleep(2)) {
    const now = phaseOf(db)
    if (order.indexOf(now) >= order.indexOf(phase)) return
  }
  throw new Error(`${phase} did not begin`)
}

/** Each batch of before is known as a whole, and its events are read as they were sent. */
async function problemsOfPrepared(folder: string): Promise<string[]> {
  const store = await openStore({ folder, now: noon })
  const problems: string[] = []
  for (let batch = 0; batch < preparedBatches; batch++) {
    const { accepted } = await store.events.append(preparedBatch(batch))
    if (accepted > 0) problems.push(`${accepted} events of before were lost in batch ${batch}`)
  }
  let next = 0
  for (let afterSeq = 0; next < preparedBatches * batchEvents;) {
    const { events, lastSeq } = await store.events.tail({ orgId, filter: {}, afterSeq, limit: 10_000 })
    if (lastSeq === afterSeq) break
    for (const { json } of events.slice(0, preparedBatches * batchEvents - next))
      if (json !== crashEvent(preparedRound, next++).json) problems.push(`the text of event ${next} differs`)
    afterSeq = lastSeq
  }
  if (next < preparedBatches * batchEvents) problems.push(`only ${next} events of before are read`)
  await store.close()
  return problems.slice(0, 10)
}
