/** Counts of each type, outcome and site of an organization, and the limits on how many different ones there may be. */
import type { Database } from 'bun:sqlite'
import type { EventRecord, GuardRail } from '../../store.ts'

/** Contract §4. The numbers are published by the server; the engine holds them. */
const valuesMax: { [member in GuardRail]: number } = { type: 1_000, outcome: 100, siteId: 1_000 }

const members = ['type', 'outcome', 'siteId'] as const satisfies GuardRail[]

type Known = { [member in GuardRail]: Set<string> }

export interface GuardRails {
  /** The first member of the event that would be one value too many, or null. */
  broken(orgId: string, event: EventRecord): GuardRail | null
  /** Counts an event that was stored; `settle` writes the counts down before its transaction ends. */
  count(orgId: string, event: EventRecord): void
  settle(orgId: string): void
  /** Counts the events again from the table, inside the transaction that removed some. */
  recount(orgId: string): void
  /** The tables went back to an earlier state: read them again when needed. */
  forget(): void
}

export function guardRails(db: Database): GuardRails {
  const knownByOrg = new Map<string, Known>()
  const unsettled: { [member in GuardRail]: Map<string, number> } = {
    type: new Map(),
    outcome: new Map(),
    siteId: new Map(),
  }
  const add = db.prepare<unknown, [string, GuardRail, string, number]>(
    `INSERT INTO event_value (org_id, member, value, count) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (org_id, member, value) DO UPDATE SET count = count + ?4`,
  )

  function known(orgId: string): Known {
    const found = knownByOrg.get(orgId)
    if (found !== undefined) return found
    const loaded: Known = { type: new Set(), outcome: new Set(), siteId: new Set() }
    const rows = db
      .query<{ member: GuardRail; value: string }, [string]>(
        'SELECT member, value FROM event_value WHERE org_id = ?',
      )
      .all(orgId)
    for (const { member, value } of rows) loaded[member].add(value)
    knownByOrg.set(orgId, loaded)
    return loaded
  }

  return {
    broken(orgId, event) {
      const values = known(orgId)
      const tooMany = (member: GuardRail) =>
        values[member].size >= valuesMax[member] && !values[member].has(event[member])
      return members.find(tooMany) ?? null
    },
    count(orgId, event) {
      const values = known(orgId)
      for (const member of members) {
        const value = event[member]
        values[member].add(value)
        unsettled[member].set(value, (unsettled[member].get(value) ?? 0) + 1)
      }
    },
    settle(orgId) {
      for (const member of members) {
        for (const [value, count] of unsettled[member]) add.run(orgId, member, value, count)
        unsettled[member].clear()
      }
    },
    recount(orgId) {
      db.query('DELETE FROM event_value WHERE org_id = ?').run(orgId)
      for (const [member, column] of [
        ['type', 'type'],
        ['outcome', 'outcome'],
        ['siteId', 'site_id'],
      ]) {
        db.query(
          `INSERT INTO event_value (org_id, member, value, count)
           SELECT org_id, '${member}', ${column}, count(*) FROM event WHERE org_id = ? GROUP BY ${column}`,
        ).run(orgId)
      }
      knownByOrg.delete(orgId)
    },
    forget() {
      knownByOrg.clear()
      for (const member of members) unsettled[member].clear()
    },
  }
}
