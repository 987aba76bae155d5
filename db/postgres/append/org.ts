/** A node's memory of an organization between appends: its number, its terms, and the last arrival that it knows of. */
import { StoreError } from '../../contract/errors.ts'
import { interner, type Term, type Terms } from '../../sql/events/write/org-state.ts'
import { orgsMax } from '../../sql/events/blocks/block.ts'
import type { Sql } from 'postgres'

export interface AppendOrg {
  num: number
  /** Other nodes may have raised it meanwhile, as the time below. */
  lastSeq: number
  termDrops: number
  terms: Terms
  /** Terms that no commit has confirmed. Each append stores all of them, because one in flight may still fail. */
  pending: Set<Term>
  /** Of the newest arrival. */
  receivedMs: number
}

interface Row {
  num: string
  last: string
  drops: string
  received: string
}

/** Organizations in memory; the terms of a hostile one take about 5 MB. */
const orgsLoadedMax = 32

export interface AppendOrgs {
  /** In the order in which their rows are locked. */
  of(orgIds: string[]): Promise<Map<string, AppendOrg>>
  /** After a conflict with another node. Terms are read again when they changed, or when `withTerms`. */
  refresh(orgIds: string[], withTerms: boolean): Promise<void>
}

export function appendOrgs(sql: Sql, hashSeed: number): AppendOrgs {
  const known = new Map<string, AppendOrg>() // least recently used first

  async function load(orgId: string): Promise<AppendOrg> {
    const find = () => sql<Row[]>`
      SELECT num, last_seq AS last, term_drops AS drops, last_received_ms AS received
      FROM event_org WHERE org_id = ${orgId}`
    let [row] = await find()
    if (row === undefined) {
      await sql`SELECT open_event_org(${orgId})`
      row = (await find())[0]!
    }
    const num = Number(row.num)
    if (num >= orgsMax) throw new StoreError('internal', 'there are too many organizations')
    const stored = await sql<{ member: string; text: string; code: string }[]>`
      SELECT member, text, code FROM event_term WHERE org = ${num}`
    const terms = stored.map(({ member, text, code }) => ({
      member: Number(member),
      text,
      code: Number(code),
    }))
    const pending = new Set<Term>()
    return {
      num,
      lastSeq: Number(row.last),
      termDrops: Number(row.drops),
      terms: interner(terms, hashSeed, (term) => pending.add(term)),
      pending,
      receivedMs: Number(row.received),
    }
  }

  async function one(orgId: string): Promise<AppendOrg> {
    const org = known.get(orgId) ?? (await load(orgId))
    const latest = known.get(orgId) ?? org // another group may have loaded it meanwhile
    known.delete(orgId)
    known.set(orgId, latest)
    return latest
  }

  return {
    async of(orgIds) {
      const orgs: [string, AppendOrg][] = []
      for (const orgId of new Set(orgIds)) orgs.push([orgId, await one(orgId)])
      for (const orgId of known.keys()) {
        if (known.size <= Math.max(orgsLoadedMax, orgs.length)) break
        if (!orgs.some(([used]) => used === orgId)) known.delete(orgId)
      }
      return new Map(orgs.toSorted(([, a], [, b]) => a.num - b.num))
    },
    async refresh(orgIds, withTerms) {
      for (const orgId of orgIds) {
        const { terms, pending, termDrops } = known.get(orgId) ?? {}
        const fresh = await load(orgId)
        const isSame = !withTerms && terms !== undefined && termDrops === fresh.termDrops
        known.set(orgId, { ...fresh, ...(isSame ? { terms, pending: pending! } : {}) })
      }
    },
  }
}
