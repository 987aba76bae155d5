/**
 * Fields that are stored as numbers, their codes, the texts of the codes, and what has one code for several fields:
 * agents and judgements.
 */
import { eventFields, type EventField } from '../../../contract/event-fields.ts'
import type { Judgement } from '../../../contract/provenance.ts'
import type { AgentNames, CountedName } from '../../../contract/store.ts'
import type { Database } from '../../database.ts'

/**
 * Every text becomes a code: 0 is "missing", 1 to 2^31 - 1 are interned in `event_term`, hashes start at 2^31. A field
 * is hashed from the start when its `termsMax` is 0, otherwise when its organization has used up its terms. Hashes can
 * collide, so a match is confirmed against the stored text (texts.ts).
 */
export const members: readonly EventField[] = eventFields

export const member = Object.fromEntries(eventFields.map(({ name, number }) => [name, number])) as {
  [name in (typeof eventFields)[number]['name']]: number
}

/** Vendor, name and purpose together, stored as one more field so that agents are counted by vendor. */
export const agentField = 22

/** A verdict, its judge, and the observer or sender behind it, stored as one more field so that they count together. */
export const judgementField = 29

/** Verdicts that the appliance vouches for. Made of two columns when it is read; never stored. */
export const vouchedField = 30

/** The arrival number of a row, for clauses about events that another table names; never stored. */
export const arrivalField = 31

/** The field with a number; undefined for columns without a field. */
export function fieldAt(number: number): EventField | undefined {
  return byNumber.get(number)
}

const byNumber = new Map(members.map((field) => [field.number, field]))

/** Fields beyond whose `termsMax` an event is rejected rather than hashed (contract §4). */
export const guardRails = ['type', 'outcome', 'siteId'] as const

const hashBit = 2 ** 31
/** What distinguishes the codes of hashes. */
export const hashSpan = hashBit

/** The code of every value beyond its field's limit, so that hostile texts cannot make rollups grow. */
export const otherCode = hashBit

export function isHash(code: number): boolean {
  return code >= hashBit
}

/** The code of a text that is not interned. `seed` is the store's. */
export function hashCode(text: string, seed: number): number {
  return hashBit + (Bun.hash.xxHash32(text, seed) >>> 1)
}

/** The texts of a field's codes, for readers. */
export function termTexts(db: Database, org: number, index: number): Map<number, string> {
  const rows = db
    .query<{ code: number; text: string }, [number, number]>(
      'SELECT code, text FROM event_term WHERE org = ? AND member = ?',
    )
    .all(org, index)
  return new Map(rows.map(({ code, text }) => [code, text]))
}

/** Known trusts, ascending. Any other ranks below them. */
export const trustLadder: readonly string[] = ['detected', 'declared', 'verified', 'linked']

/**
 * The place of a trust in `trustLadder` by its code; -1 for none, or a word of the sender's own. `hashedText` reads the
 * text of a code that is a hash.
 */
export function trustHeights(
  db: Database,
  org: number,
): (code: number, hashedText: () => string | null) => number {
  const heightByCode = new Map<number, number>([[0, -1]])
  let texts: Map<number, string> | null = null
  return (code, hashedText) => {
    if (isHash(code)) return trustLadder.indexOf(hashedText() ?? '') // two texts may share a hash
    let height = heightByCode.get(code)
    if (height === undefined) {
      texts ??= termTexts(db, org, member.trust)
      heightByCode.set(code, (height = trustLadder.indexOf(texts.get(code) ?? '')))
    }
    return height
  }
}

/*
 * The code of an agent is that of a term "vendor name purpose": the three codes, 0 for a missing one, `beyond` for one
 * past its limit. These terms have a limit too, so hostile texts cannot create unlimited combinations.
 */
const beyond = '*'

interface Agent {
  vendor: number // otherCode: past its limit
  name: number
  purpose: number
}

export function agentText(vendor: number, name: number, purpose: number): string {
  const part = (code: number): string => (isHash(code) ? beyond : String(code))
  return `${part(vendor)} ${part(name)} ${part(purpose)}`
}

/** The agents of an organization by code. */
export function agentsByCode(db: Database, org: number): Map<number, Agent> {
  const agents = new Map<number, Agent>()
  for (const [code, text] of termTexts(db, org, agentField)) {
    const [vendor, name, purpose] = text
      .split(' ')
      .map((part) => (part === beyond ? otherCode : Number(part))) as [number, number, number]
    agents.set(code, { vendor, name, purpose })
  }
  return agents
}

/** The names of an organization's agents, by code. */
export function agentNames(db: Database, org: number): (code: number) => AgentNames {
  const agents = agentsByCode(db, org)
  const texts = {
    vendor: termTexts(db, org, member.vendor),
    name: termTexts(db, org, member.name),
    purpose: termTexts(db, org, member.purpose),
  }
  const otherAgent: Agent = { vendor: otherCode, name: otherCode, purpose: otherCode }
  return (code) => {
    const agent = agents.get(code) ?? otherAgent
    const readName = (field: keyof Agent): CountedName => {
      if (agent[field] === 0) return 'missing'
      return agent[field] === otherCode ? 'other' : { name: texts[field].get(agent[field]) ?? '' }
    }
    return { vendor: readName('vendor'), name: readName('name'), purpose: readName('purpose') }
  }
}

/*
 * The code of a judgement is that of a term "verdict judge by": the codes of the verdict and of the judge in their
 * dictionaries, and of the observer or, where the sender is the judge, of its ingest key.
 */
export function judgementText(verdict: number, judge: number, observer: number): string {
  const part = (code: number): string => (isHash(code) ? beyond : String(code))
  return `${part(verdict)} ${part(judge)} ${part(observer)}`
}

/** The judgements of an organization by code. */
export function judgementsByCode(
  db: Database,
  org: number,
): Map<number, Judgement & { verdictCode: number }> {
  const judges = termTexts(db, org, member.judgedBy)
  const verdicts = termTexts(db, org, member.verdict)
  const observers = termTexts(db, org, member.observedBy)
  const keys = termTexts(db, org, member.key)
  const judgements = new Map<number, Judgement & { verdictCode: number }>()
  for (const [code, text] of termTexts(db, org, judgementField)) {
    const [verdict = '', judge = '', observer = ''] = text.split(' ')
    const judgedBy = judges.get(Number(judge)) === 'appliance' ? 'appliance' : 'sender'
    const names = judgedBy === 'appliance' ? observers : keys
    judgements.set(code, {
      verdictCode: verdict === beyond ? otherCode : Number(verdict),
      verdict: verdicts.get(Number(verdict)) ?? null,
      judgedBy,
      by: names.get(Number(observer)) ?? null,
    })
  }
  return judgements
}
