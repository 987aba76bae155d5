/** Verify names the place of every kind of damage, SQL or a flipped byte (bodies: verify-verb.test.ts). */
import { expect, test } from 'bun:test'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import type { PageOfTable } from './damage.ts'
import { isFull } from '../support/runs.ts'
import { engine, event, type Engine } from './subject.ts'

const leaf = (table: string, end: 'first' | 'last' = 'first', behind = 0): PageOfTable => ({
  table,
  kind: 'leaf',
  at: end,
  behind,
})
const overflow = (table: string): PageOfTable => ({ table, kind: 'overflow', at: 'first', behind: 0 })

/** Damage by SQL or by a flipped byte, and the expected first fault. */
type Damage = [by: string | PageOfTable, place: RegExp, problem: RegExp]

const damages: Damage[] = [
  [`DELETE FROM event_body WHERE place % ${sealed} = 257`, /^arrivals 257 to 512$/, /missing/],
  [`DELETE FROM event_block WHERE place % ${sealed} = 257`, /^the rollup/, /too many/],
  [`UPDATE event_block SET min_at = min_at + 5 WHERE place % ${sealed} = 1`, /^arrivals 1 to 256$/, /times/],
  ["DELETE FROM event_term WHERE text = 'tool.executed'", /^arrivals/, /the value of type/],
  ['DELETE FROM rollup_value WHERE member = 7', /^the rollup by tool of 20/, /too few/],
  ['DELETE FROM rollup_value WHERE member = 32', /^the rollup by duration of 20/, /too few/],
  ['DELETE FROM rollup_value WHERE member = 33', /^the rollup by session of 20/, /too few/],
  ['DELETE FROM event_id_chunk WHERE chunk = 512', /^arrivals/, /not in id run/],
  [leaf('event_block'), /^arrivals \d+ to \d+$/, /bytes/],
  [leaf('event_id_chunk'), /^arrivals \d+ to \d+$/, /not in id run/],
  [overflow('event_id_filter'), /^arrivals \d+ to \d+$/, /not in id run/],
  // Of an hour, and of a member, that no event has.
  [
    'INSERT INTO rollup_value SELECT org, member, 1, site, type, outcome, code, 1, 0 FROM rollup_value LIMIT 1',
    /^the rollup by .* of 1970-01-01T01/,
    /says 1 too many/,
  ],
  [
    'INSERT INTO rollup_value SELECT org, 60, hour, site, type, outcome, code, 1, 0 FROM rollup_value LIMIT 1',
    /^the rollup by an unknown field of 20/,
    /says 1 too many/,
  ],
  [leaf('rollup_metric'), /^the rollup of 20/, /too (few|many)/],
  // The rows of the last page depend on the store's own hashes.
  [
    leaf('rollup_value', 'last'),
    /^the rollup by (session|subject|duration and day|class and vendor) of 20/,
    /too (few|many)/,
  ],
  [leaf('event_type_total'), /^the totals by type$/, /differ/],
]

const ofSegment = new RegExp(`^the index of arrivals 0 to ${sealed - 1}$`)

const ofPaths = new RegExp(`^the path columns of arrivals 0 to ${sealed - 1}$`)

const damagesOfSegment: Damage[] = [
  ['DELETE FROM event_path WHERE path = \'"plan"\'', ofPaths, /differ from arrival 1 in "plan"/],
  ["UPDATE event_path SET packed = substr(packed, 1, 20) WHERE path <> ''", ofPaths, /cannot be read/],
  [
    'UPDATE event_path SET packed = (SELECT packed FROM event_path WHERE path = \'"n"\') WHERE path = \'"plan"\'',
    ofPaths,
    /differ from arrival 1 in "plan"/,
  ],
  [
    "UPDATE event_path SET packed = (SELECT packed FROM event_path AS other WHERE other.path = '\"n\"') WHERE path = 'sessions'",
    ofPaths,
    /cannot be read|sample of sessions/,
  ],
  ["UPDATE event_path SET packed = x'' WHERE path = 'sessions'", ofPaths, /sample of sessions/],
  [overflow('event_path'), ofPaths, /./],
  ['DELETE FROM event_posting WHERE member = 0 AND code = 1', ofSegment, /by its type/],
  ['DELETE FROM event_segment', ofSegment, /leaves out/],
  [leaf('event_posting'), ofSegment, /./],
  [leaf('event_posting_rest', 'last'), ofSegment, /./],
  [leaf('event_segment', 'first', 4), ofSegment, /another length or time/],
  [overflow('event_posting_filter'), ofSegment, /by its (sessionId|subject)/],
]

const damagesOfGroup: Damage[] = [
  ['UPDATE event_id_group SET chunks = 0, parts = 0', /^arrivals/, /not in id run/],
  ['UPDATE event_id_chunk SET chunk = -chunk - 1 WHERE chunk < 1024', /^arrivals/, /not in id run/],
  ['UPDATE event_id_filter SET bits = zeroblob(524288) WHERE run = 3', /^arrivals/, /not in id run/],
]

/** Verifying a sealed segment takes 0.3 s. An everyday run makes half of this damage, the other half another time. */
const half = Math.floor(Math.random() * 2)
const someOfSegment = damagesOfSegment.filter((_, index) => isFull || index % 2 === half)

const plans = ['pro', 'free', 'team']

function filled(total: number, idsPerRun: number, perCommit: number): Engine {
  const subject = engine({ idsPerRun })
  for (let from = 0; from < total; from += perCommit) {
    const events = Array.from({ length: perCommit }, (_, n) => ({
      ...event(from + n, (from + n) * 100),
      sessionId: `s${(from + n) >> 5}`,
      json: JSON.stringify({ metadata: { plan: plans[(from + n) % 3], n: (from + n) % 40_000 } }),
    }))
    subject.group(() => subject.append('org_a', events))
  }
  subject.idle()
  while (subject.spare());
  return subject
}

function expectLocated(subject: Engine, list: Damage[]): void {
  for (const [edit, place, problem] of list) {
    const look = (reader: Engine['reader']) => {
      const [first] = reader.verify().faults
      expect([edit, first]).toEqual([
        edit,
        { orgId: 'org_a', place: expect.stringMatching(place), problem: expect.stringMatching(problem) },
      ])
    }
    if (typeof edit === 'string') subject.damaged(edit, look)
    else subject.flipped([edit], look)
  }
}

test.each([
  ['blocks, ids and rollups', 12_000, 8_000, 6_000, damages],
  ['a merged group of id runs', 12_000, 100, 120, damagesOfGroup],
  ['the index of a sealed segment', sealed + 1_024, sealed / 2, 1_024, someOfSegment],
] as const)(
  'the first fault locates each damage to %s; undamaged data has none',
  (_, total, idsPerRun, perCommit, list) => {
    const subject = filled(total, idsPerRun, perCommit)
    expect(subject.reader.verify()).toEqual({ orgs: [{ orgId: 'org_a', events: total }], faults: [] })
    expectLocated(subject, [...list])
    expect(subject.reader.verify().faults).toEqual([])
    subject.close()
  },
  90_000,
)
