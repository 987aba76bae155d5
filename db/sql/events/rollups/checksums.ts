/** Compares any number of rollup rows with their events in little memory, by checksums of each hour and field. */
import { countingInto, dayOf, outcomesSpan, type RollupCounts } from './counts.ts'
import type { Database } from '../../database.ts'

/*
 * A checksum is the sum of a row's events times a hash of its key, modulo 2^32, with two hashes. Counted rows are
 * added, one event at a time, and stored rows subtracted: equal rows leave zero. Rows that differ leave zero once in
 * 2^62 times. As maps the rows of 100 million events took 10 GB.
 */

/** An hour and the fields whose rows are wrong in it; null for the events themselves (rollup_metric). */
export interface WrongRows {
  hour: number
  isWrong(member: number | null): boolean
}

interface RollupChecksums {
  /** As in `RollupCounts`. */
  add: RollupCounts['add']
  events(): number
  /** Compares with the stored rows, in the same transaction; once, after all events were added. */
  wrongRows(db: Database, org: number): WrongRows[]
}

/** Slot 0 is for rollup_metric, 1 + n for field n, and the last one for fields that no event has. */
const slots = 64
const lastSlot = slots - 1

function slotOf(member: number | null): number {
  if (member === null) return 0
  return member >= 0 && member + 1 < lastSlot ? member + 1 : lastSlot
}

/** The hashes of a site, type and outcome, and the checksums of an hour. */
interface Group {
  a: number
  b: number
  sums: Int32Array
}

export function rollupChecksums(): RollupChecksums {
  const byHour = new Map<number, Int32Array>()
  let lastHour = NaN
  let lastSums: Int32Array = new Int32Array(0)
  let events = 0

  function sumsOf(hour: number): Int32Array {
    if (hour === lastHour) return lastSums
    let sums = byHour.get(hour)
    if (sums === undefined) byHour.set(hour, (sums = new Int32Array(2 * slots)))
    lastHour = hour
    return (lastSums = sums)
  }

  /** One object for all groups: a group is used up before the next one of its kind. */
  function groups(): (hour: number, site: number, type: number, outcome: number) => Group {
    const group = { a: 0, b: 0, sums: lastSums }
    return (hour, site, type, outcome) => {
      const typeOutcome = type * outcomesSpan + outcome
      group.a = mixed(site ^ mixed(typeOutcome ^ 0x27d4eb2f))
      group.b = mixed(typeOutcome ^ mixed(site ^ 0x165667b1))
      group.sums = sumsOf(hour)
      return group
    }
  }

  function add({ a, b, sums }: Group, slot: number, code: number, count: number): void {
    const high = Math.floor(code / 2 ** 32)
    const sumIndex = 2 * slot
    const first = mixed(a ^ code ^ Math.imul(high, 0x9e3779b1))
    const second = mixed(b ^ Math.imul(code, 0x85ebca77) ^ Math.imul(high, 0xc2b2ae3d))
    sums[sumIndex]! += Math.imul(first, count)
    sums[sumIndex + 1]! += Math.imul(second, count)
    // A stored number may be wrong by 2^32.
    const beyond = Math.trunc(count / 2 ** 32)
    if (beyond === 0) return
    sums[sumIndex]! += Math.imul(mixed(first), beyond)
    sums[sumIndex + 1]! += Math.imul(mixed(second), beyond)
  }

  const ofHour = groups()
  const ofDay = groups()
  return {
    add: countingInto<Group>(
      {
        event(hour, site, type, outcome) {
          events++
          const group = ofHour(hour, site, type, outcome)
          add(group, 0, 0, 1)
          return group
        },
        day: (hour, site, type) => ofDay(dayOf(hour), site, type, 0),
        value: (group, index, code) => add(group, index + 1, code, 1),
      },
      null,
    ),
    events: () => events,
    wrongRows(db, org) {
      for (const { hour, site, type, outcome, member, code, live } of storedRows(db, org))
        add(ofHour(hour, site, type, outcome), slotOf(member), code, -live)
      return [...byHour]
        .filter(([, sums]) => sums.some((sum) => sum !== 0))
        .sort(([a], [b]) => a - b)
        .map(([hour, sums]) => ({
          hour,
          isWrong: (member) => sums[2 * slotOf(member)] !== 0 || sums[2 * slotOf(member) + 1] !== 0,
        }))
    },
  }
}

interface StoredRow {
  hour: number
  site: number
  type: number
  outcome: number
  member: number | null
  code: number
  live: number
}

function* storedRows(db: Database, org: number): Generator<StoredRow> {
  const key = 'hour, site, type, outcome'
  const rows = (columns: string, table: string) =>
    db.query<StoredRow, [number]>(`SELECT ${key}, ${columns}, live FROM ${table} WHERE org = ?`).iterate(org)
  yield* rows('NULL AS member, 0 AS code', 'rollup_metric')
  yield* rows('member, code', 'rollup_value')
}

/** The end of MurmurHash3: every bit of the result depends on every bit of `hash`. */
function mixed(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
