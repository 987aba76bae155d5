/** Fills columns and counts that earlier schemas lack, once, in the transaction of the migration. */
import { eventTimeMs } from '../../rules/event-record.ts'
import {
  packZones,
  readColumns,
  readWholeBlock,
  writeBlock,
  writeColumns,
  zonesBetween,
  type Zone,
} from '../../sql/events/blocks/block-table.ts'
import {
  type BlockContent,
  extra,
  segmentEvents,
  seqMax,
  seqOf,
  unpackBlock,
} from '../../sql/events/blocks/block.ts'
import { joinText } from '../../rules/event-record.ts'
import { addToHours, takeFromHours } from '../../sql/events/rollups/fold.ts'
import { agentField, agentText, hashCode, isHash, member } from '../../sql/events/blocks/fields.ts'
import { writePostings } from '../../sql/events/index/posting.ts'
import {
  childOf,
  classVendorField,
  countedCode,
  outcomesSpan,
  pairCode,
  rollupCounts,
  typesSpan,
} from '../../sql/events/rollups/counts.ts'
import { readSeed } from '../../sql/events/dedupe/fingerprints.ts'
import { openTerms, type Terms } from '../../sql/events/write/org-state.ts'
import type { SqliteDatabase } from '../file/connection.ts'
import { hourMs } from '../../contract/units.ts'

/** Longer texts were never meant as names, and 4,096 of them, interned, would fill memory at every start. */
const internedCharsMax = 200

interface Fill {
  db: SqliteDatabase
  org: number
  folded: number
  terms: Terms
  hashSeed: number
  /** Hour -> site, type and outcome -> agent -> events, of what rollups already count. */
  agents: Map<number, Map<number, Map<number, number>>>
}

/**
 * Gives events of a clock far ahead their time of arrival, blocks the names and purposes of their agents, and sealed
 * segments an index of both. Rollups follow, without the agents of events that expired before.
 */
export function fillFields(db: SqliteDatabase): void {
  const orgs = db.query<{ num: number; folded: number }, []>(
    'SELECT num, folded_seq AS folded FROM event_org',
  )
  const segmentsOf = db.query<{ segment: number }, [number]>(
    'SELECT segment FROM event_segment WHERE org = ?',
  )
  const hashSeed = readSeed(db).values
  for (const { num, folded } of orgs.all()) {
    const fill: Fill = {
      db,
      org: num,
      folded,
      terms: openTerms(db, num, hashSeed),
      hashSeed,
      agents: new Map(),
    }
    for (const zone of zonesBetween(db, num, 1, seqMax)) fillBlock(fill, zone)
    addAgents(fill)
    for (const { segment } of segmentsOf.all(num)) fillSegment(db, num, segment)
  }
}

function fillBlock(fill: Fill, { place }: Zone): void {
  const { db, org, folded } = fill
  const whole = readWholeBlock(db, place)
  if (whole === null) return
  const content = unpackBlock(whole)
  const { columns } = content
  const spilledBefore = content.spilled.length
  const foldedRows = Math.max(0, Math.min(content.events, folded + 1 - seqOf(place)))
  const agents = readAgents(fill, content)
  const ahead = rowsAhead(content)
  if (agents.length === 0 && ahead.length === 0) return

  const moved = ahead.filter((row) => row < foldedRows)
  const countMoved = () => {
    const counts = rollupCounts()
    for (const row of moved) counts.add({ column: (index) => columns[index]! }, row, row + 1)
    return counts
  }
  if (moved.length > 0) takeFromHours(db, org, countMoved())
  for (const { row, name, purpose, agent } of agents) {
    columns[member.name]![row] = name
    columns[member.purpose]![row] = purpose
    columns[agentField]![row] = agent
  }
  for (const row of ahead) columns[extra.at]![row] = columns[extra.received]![row]!
  if (moved.length > 0) addToHours(db, org, countMoved())
  const isMoved = new Set(moved)
  for (const { row } of agents) if (row < foldedRows && !isMoved.has(row)) countAgent(fill, content, row)
  if (content.spilled.length > spilledBefore) writeBlock(db, place, content)
  else writeColumns(db, place, content, whole)
}

function rowsAhead({ columns, events }: BlockContent): number[] {
  const at = columns[extra.at]!
  const received = columns[extra.received]!
  const rows = Array.from({ length: events }, (_, row) => row)
  return rows.filter((row) => eventTimeMs(at[row]!, received[row]!) !== at[row])
}

interface AgentRow {
  row: number
  name: number
  purpose: number
  agent: number
}

/** The rows that name an agent or its purpose, as codes. */
function readAgents({ terms, hashSeed }: Fill, content: BlockContent): AgentRow[] {
  const agentRows: AgentRow[] = []
  for (let row = 0; row < content.events; row++) {
    const text = content.texts[row]!
    if (content.columns[member.type]![row] === 0 || !mayNameAgent(text)) continue
    const agent = agentOf(content, row)
    const codeOf = (index: number, value: unknown): number => {
      if (typeof value !== 'string' || value === '') return 0
      const code = value.length > internedCharsMax ? hashCode(value, hashSeed) : terms.code(index, value)
      if (isHash(code)) content.spilled.push([row, index, value])
      return code
    }
    const name = codeOf(member.name, agent.name)
    const purpose = codeOf(member.purpose, agent.purpose)
    if (name + purpose === 0) continue
    const vendor = content.columns[member.vendor]![row]!
    agentRows.push({ row, name, purpose, agent: terms.code(agentField, agentText(vendor, name, purpose)) })
  }
  return agentRows
}

/** A cheap check without false negatives. */
function mayNameAgent(text: string): boolean {
  return text.includes('"name"') || text.includes('"purpose"') || text.includes('\\u')
}

function agentOf(content: BlockContent, row: number): { name?: unknown; purpose?: unknown } {
  const split = {
    text: content.texts[row]!,
    idAt: content.columns[extra.idAt]![row]!,
    sessionAt: content.columns[extra.sessionAt]![row]!,
  }
  const event = JSON.parse(joinText(split, content.ids[row]!, content.sessions[row]!)) as { agent?: unknown }
  return typeof event.agent === 'object' && event.agent !== null ? event.agent : {}
}

function countAgent({ agents }: Fill, { columns }: BlockContent, row: number): void {
  const value = (index: number): number => columns[index]![row]!
  const group = (value(member.siteId) * typesSpan + value(member.type)) * outcomesSpan + value(member.outcome)
  const counts = childOf(childOf(agents, Math.floor(value(extra.at) / hourMs)), group)
  const agent = countedCode(value(agentField))
  counts.set(agent, (counts.get(agent) ?? 0) + 1)
}

function addAgents({ db, org, agents }: Fill): void {
  const add = db.query(
    `INSERT INTO rollup_value (live, org, member, hour, site, type, outcome, code) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET live = live + excluded.live`,
  )
  for (const [hour, groups] of agents) {
    for (const [group, counts] of groups) {
      const siteAndType = Math.floor(group / outcomesSpan)
      const key = [hour, Math.floor(siteAndType / typesSpan), siteAndType % typesSpan, group % outcomesSpan]
      for (const [agent, events] of counts) add.run(events, org, agentField, ...key, agent)
    }
  }
}

/** Of an index with names and purposes, and without later fields. */
const namesIndexVersion = 2

/** The rest of a segment that retention has begun to delete. */
function fillSegment(db: SqliteDatabase, org: number, segment: number): void {
  const first = segment * segmentEvents
  const zones = zonesBetween(db, org, first, first + segmentEvents)
  if (zones.length === 0) return
  const names = new Uint32Array(segmentEvents)
  const purposes = new Uint32Array(segmentEvents)
  for (const { place, events } of zones) {
    const block = readColumns(db, place)
    if (block === null) continue
    names.set(block.column(member.name).subarray(0, events), seqOf(place) - first)
    purposes.set(block.column(member.purpose).subarray(0, events), seqOf(place) - first)
  }
  writePostings(db, { org, segment, member: member.name }, names, segmentEvents)
  writePostings(db, { org, segment, member: member.purpose }, purposes, segmentEvents)
  db.query(
    `UPDATE event_segment SET zones = ?, min_at = ?, max_at = ?, index_version = ? WHERE org = ? AND segment = ?`,
  ).run(
    packZones(zones),
    zones.reduce((low, { minAt }) => Math.min(low, minAt), Infinity),
    zones.reduce((high, { maxAt }) => Math.max(high, maxAt), -Infinity),
    namesIndexVersion,
    org,
    segment,
  )
}

/** Events that expired before stay uncounted, because nothing tells which pair they had. */
export function fillClassVendor(db: SqliteDatabase): void {
  const orgs = db.query<{ num: number; folded: number }, []>(
    'SELECT num, folded_seq AS folded FROM event_org',
  )
  for (const { num, folded } of orgs.all()) fillOrg(db, num, folded)
}

function fillOrg(db: SqliteDatabase, org: number, folded: number): void {
  const byHour = new Map<number, Map<number, Map<number, number>>>() // hour -> site, type and outcome -> pair -> events
  for (const zone of zonesBetween(db, org, 1, folded + 1)) {
    const block = readColumns(db, zone.place)
    if (block === null) continue
    const [types, outcomes, sites] = [member.type, member.outcome, member.siteId].map(block.column)
    const [classes, vendors, times] = [member.class, member.vendor, extra.at].map(block.column)
    const end = Math.min(block.rows, folded + 1 - seqOf(zone.place))
    for (let row = 0; row < end; row++) {
      if (types![row] === 0) continue // deleted
      const group = (sites![row]! * typesSpan + types![row]!) * outcomesSpan + outcomes![row]!
      const pairs = childOf(childOf(byHour, Math.floor(times![row]! / hourMs)), group)
      const pair = pairCode(classes![row]!, vendors![row]!)
      pairs.set(pair, (pairs.get(pair) ?? 0) + 1)
    }
  }
  const add = db.query(
    `INSERT INTO rollup_value (org, member, hour, site, type, outcome, code, live) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const [hour, groups] of byHour) {
    for (const [group, pairs] of groups) {
      const siteAndType = Math.floor(group / outcomesSpan)
      const key = [hour, Math.floor(siteAndType / typesSpan), siteAndType % typesSpan, group % outcomesSpan]
      for (const [pair, events] of pairs) add.run(org, classVendorField, ...key, pair, events)
    }
  }
}
