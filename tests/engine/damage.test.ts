/** One flipped byte in each kind of table: `verify` names the place (bodies: verify-verb.test.ts). */
import { expect, test } from 'bun:test'
import type { PageOfTable } from './damage.ts'
import { engine, event } from './subject.ts'

const total = 66_000 // a sealed segment and a few more

const leaf = (table: string, at: 'first' | 'last' = 'first', behind = 0): PageOfTable => ({
  table,
  kind: 'leaf',
  at,
  behind,
})
const overflow = (table: string): PageOfTable => ({ table, kind: 'overflow', at: 'first', behind: 0 })

const places: [page: PageOfTable, place: RegExp, problem: RegExp][] = [
  [leaf('event_block'), /^arrivals \d+ to \d+$/, /bytes/],
  [leaf('event_id_chunk'), /^arrivals \d+ to \d+$/, /not in id run/],
  [overflow('event_id_filter'), /^arrivals \d+ to \d+$/, /not in id run/],
  [leaf('event_posting'), /^the index of arrivals 0 to 65535$/, /./],
  [leaf('event_posting_rest', 'last'), /^the index of arrivals 0 to 65535$/, /./],
  [leaf('event_segment', 'first', 4), /^the index of arrivals 0 to 65535$/, /another length or time/],
  [overflow('event_posting_filter'), /^the index of arrivals 0 to 65535$/, /by its (sessionId|subject)/],
  [leaf('rollup_metric'), /^the rollup of 20/, /too (few|many)/],
  // The rows of the last page depend on the store's own hashes.
  [
    leaf('rollup_value', 'last'),
    /^the rollup by (session|subject|duration and day|class and vendor) of 20/,
    /too (few|many)/,
  ],
  [leaf('event_type_total'), /^the totals by type$/, /differ/],
]

test('the first fault locates the byte in every table', () => {
  const subject = engine({ idsPerRun: 30_000 })
  for (let from = 0; from < total; from += 6_000) {
    const events = Array.from({ length: 6_000 }, (_, n) => ({
      ...event(from + n, (from + n) * 100),
      sessionId: `s${(from + n) >> 5}`,
    }))
    subject.group(() => subject.append('org_a', events))
  }
  subject.idle()
  expect(subject.reader.verify().faults).toEqual([])
  subject.flipped(
    places.map(([page]) => page),
    (reader, page) => {
      const [, place, problem] = places.find(([one]) => one === page)!
      const [first] = reader.verify().faults
      expect([page.table, first]).toEqual([
        page.table,
        { orgId: 'org_a', place: expect.stringMatching(place), problem: expect.stringMatching(problem) },
      ])
    },
  )
  subject.close()
}, 90_000)
