/**
 * One round of kill -9 while the data of an earlier schema is upgraded. Opening it again must complete the upgrade with
 * all data of the earlier release.
 */
import { isDeepStrictEqual } from 'node:util'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { contentOf, type Content, type Fixture } from '../store/fixture.ts'
import { noon } from '../store/make.ts'
import { killAfter, startProgram, type Found } from './round.ts'

/** Data of schema 5 has no sketches until the first re-count. */
const unmade = /^the rollup by (duration|duration and day|session|subject) of /

/** The delay counts from the start of the process, which takes most of it. */
export async function migrationRound(folder: string, fixture: Fixture, killAfterMs: number): Promise<Found> {
  fixture.unpack(folder)
  await killAfter(startProgram('engine-opener.ts', { folder }), killAfterMs)
  const store = await openStore({ folder, now: noon })
  const content = await contentOf(store)
  await store.close()
  const faults = Object.entries(fixture.content).flatMap(([name, value]) =>
    isDeepStrictEqual(value, content[name as keyof Content]) ? [] : [`${name} differs`],
  )
  const verdict = await openDatabaseAdmin(folder).verifyEvents()
  for (const { place, problem } of verdict.faults)
    if (fixture.schema > 5 || !unmade.test(place)) faults.push(`${place} ${problem}`)
  faults.push(
    ...(await openDatabaseAdmin(folder).verifyAudit()).faults.map(
      (fault) => `audit: ${JSON.stringify(fault)}`,
    ),
  )
  const had = Object.values(fixture.content.events).reduce((sum, { total }) => sum + total, 0)
  const heldEvents = verdict.orgs.reduce((sum, { events }) => sum + events, 0)
  return {
    acknowledged: had,
    lost: Math.max(0, had - heldEvents),
    doubled: Math.max(0, heldEvents - had),
    faults,
  }
}
