/** Explore reads only what its answer needs: texts of events only where no path column has the member. */
import { expect, test } from 'bun:test'
import { openStore } from '../../db/open.ts'
import { makeAudit } from '../store/make.ts'
import { tempDir } from '../support/temp-dir.ts'
import { startMs } from './engine-events.ts'
import { fill, makePaths, openExplorer, orgId, plans, questions, type Asking } from './explore.bench.ts'

const events = 110_000 // a sealed segment and the arrivals after it

test('counted work from texts and from path columns, beside parsing every text', async () => {
  using dir = tempDir('explore-work')
  const folder = dir.join('data')
  const opening = { folder, now: startMs, readers: 1, readDeadlineMs: 60_000 }
  let store = await openStore(opening)
  try {
    await fill(store, events)
    await store.close()
    const explorer = openExplorer(folder)
    const namedQuestions = questions(events)
    const ask = (name: string): Asking => explorer.ask(name, namedQuestions[name]!)
    const byVendor = ask('events by vendor, whole hours')
    expect([byVendor.found.all.total, byVendor.texts]).toEqual([events, 0])
    expect(byVendor.blocks).toBeLessThan(150) // those that are not folded yet
    const first = ask('events by metadata.plan')
    expect(first.found.rows.map(({ value, total }) => [value, total])).toEqual(
      [...plans].sort().map((plan) => [plan, events / plans.length]),
    )
    makePaths(folder)
    const again = ask('events by metadata.plan')
    expect(again.found).toEqual(first.found)
    const open = explorer.unsealed()
    expect(open).toBeLessThan(first.texts / 2)
    expect([again.texts, again.blocks]).toEqual([open, 0]) // columns after the segment are cached
    const otherAnswer = ask('the same, another measure')
    expect([otherAnswer.texts, otherAnswer.found.all.events]).toEqual([open, events])
    const rare = explorer.ask('a rare vendor', {
      ...namedQuestions['events by metadata.plan, of a rare vendor']!,
    })
    expect(rare.texts).toBeLessThanOrEqual(open)
    const parseMs = Math.min(explorer.parseAll(), explorer.parseAll())
    console.log(
      `parsing ${parseMs.toFixed(0)} ms, texts ${first.ms.toFixed(0)}, columns ${again.ms.toFixed(0)}`,
    )
    // Beside other suites 0.44 and 0.2. The bounds allow for a machine that is busier.
    expect(first.ms).toBeLessThan(2 * parseMs)
    expect(again.ms).toBeLessThan(first.ms)
    store = await openStore(opening)
    const sessionId = await firstSession(store)
    const totalBefore = first.found.all.total!
    let cursor: Awaited<ReturnType<typeof store.events.erase>>['next'] = null
    let erased = 0
    do {
      const audit = cursor === null ? makeAudit(orgId) : null
      const step: Awaited<ReturnType<typeof store.events.erase>> = await store.events.erase({
        orgId,
        sessionIds: [sessionId],
        subjects: [],
        audit,
        cursor,
      })
      erased += step.events
      cursor = step.next
    } while (cursor !== null)
    expect(erased).toBeGreaterThan(0)
    const answerAfter = ask('events by metadata.plan')
    expect(answerAfter.found.all.total).toBe(totalBefore - erased)
    explorer.close()
  } finally {
    await store.close()
  }
}, 60_000)

/** A session of the first segment. */
async function firstSession(store: Awaited<ReturnType<typeof openStore>>): Promise<string> {
  const { events: storedEvents } = await store.events.tail({ orgId, filter: {}, afterSeq: 0, limit: 1 })
  return (JSON.parse(storedEvents[0]!.json) as { sessionId: string }).sessionId
}
