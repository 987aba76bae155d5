/** A node's memory of an organization between appends: its number, its terms, and the last arrival that it knows of. */
import { StoreError } from '../../contract/errors.ts'
import { interner, type Term, type Terms } from '../../sql/events/write/org-state.ts'
import { orgsMax } from '../../sql/events/blocks/block.ts'
import type { AppendClient } from './client.ts'

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
  num: number
  last: number
  drops: number
  received: number
}

/** Organizations in memory; the terms of a hostile one take about 5 MB. */
const orgsLoadedMax = 32

interface AppendOrgs {
  /** In the order in which their rows are locked. */
  of(orgIds: string[]): Promise<Map<string, AppendOrg>>
  /** After a conflict with another node. Terms are read again when they changed, or when `withTerms`. */
  refresh(orgIds: string[], withTerms: boolean): Promise<void>
}

export function appendOrgs({ schema, rows }: AppendClient, hashSeed: number): AppendOrgs {
  const loadedOrgs = new Map<string, AppendOrg>() // least recently used first

  async function load(orgId: string): Promise<AppendOrg> {
    const find = async () => {
      const columns = 'num, last_seq AS last, term_drops AS drops, last_received_ms AS received'
      return rows<Row>(`SELECT ${columns} FROM ${schema}.event_org WHERE org_id = $1::text`, [orgId])
    }
    let [row] = await find()
    if (row === undefined) {
      await rows(`SELECT ${schema}.open_event_org($1::text)`, [orgId])
      row = (await find())[0]!
    }
    const { num } = row
    if (num >= orgsMax) throw new StoreError('internal', 'there are too many organizations')
    const stored = await rows<Term>(
      `SELECT member, text, code FROM ${schema}.event_term WHERE org = $1::bigint`,
      [num],
    )
    const pending = new Set<Term>()
    return {
      num,
      lastSeq: row.last,
      termDrops: row.drops,
      terms: interner(stored, hashSeed, (term) => pending.add(term)),
      pending,
      receivedMs: row.received,
    }
  }

  async function findOrg(orgId: string): Promise<AppendOrg> {
    const org = loadedOrgs.get(orgId) ?? (await load(orgId))
    const latest = loadedOrgs.get(orgId) ?? org // another group may have loaded it meanwhile
    loadedOrgs.delete(orgId)
    loadedOrgs.set(orgId, latest)
    return latest
  }

  return {
    async of(orgIds) {
      const orgs: [string, AppendOrg][] = []
      for (const orgId of new Set(orgIds)) orgs.push([orgId, await findOrg(orgId)])
      for (const orgId of loadedOrgs.keys()) {
        if (loadedOrgs.size <= Math.max(orgsLoadedMax, orgs.length)) break
        if (!orgs.some(([usedOrgId]) => usedOrgId === orgId)) loadedOrgs.delete(orgId)
      }
      return new Map(orgs.toSorted(([, a], [, b]) => a.num - b.num))
    },
    async refresh(orgIds, withTerms) {
      for (const orgId of orgIds) {
        const { terms, pending, termDrops } = loadedOrgs.get(orgId) ?? {}
        const fresh = await load(orgId)
        const isSame = !withTerms && terms !== undefined && termDrops === fresh.termDrops
        loadedOrgs.set(orgId, { ...fresh, ...(isSame ? { terms, pending: pending! } : {}) })
      }
    },
  }
}
