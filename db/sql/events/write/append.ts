/** Adds a batch's events to the blocks that the next commit writes. */
import type { AccessResult, AppendResult, EventBatch } from '../../../contract/store.ts'
import { StoreError } from '../../../contract/errors.ts'
import type { AccessLedger, OpenLines } from '../../../rules/access-ledger.ts'
import {
  arrivalTimeMs,
  eventTimeMs,
  internFields,
  joinText,
  splitText,
  type SentEvent,
  type SplitText,
} from '../../../rules/event-record.ts'
import {
  type BlockContent,
  blockEventsMax,
  clearBlock,
  emptyBlock,
  extra,
  segmentOf,
} from '../blocks/block.ts'
import {
  agentField,
  agentText,
  isHash,
  judgementField,
  judgementText,
  member,
  otherCode,
} from '../blocks/fields.ts'
import { isKnownVerdict } from '../../../contract/provenance.ts'
import type { Staging, Terms } from './org-state.ts'
import { dayMs } from '../../../contract/units.ts'

/** A session's id as JSON text and as a code, a hash that is the same in every organization. */
interface Session {
  text: string
  code: number
}

const sessionsMax = 4_096

/** Which ids an organization has, as JSON texts. */
export interface KnownIds {
  has(org: Staging, id: string, index: number): boolean
  /** Called with the ids of a batch before `has` is asked for each of them, by its index. */
  prepare(org: Staging, ids: readonly string[]): void
  /** The id that `has` did not find is the event's with this arrival number. */
  add(org: Staging, seq: number): void
}

/** A batch as it comes from the calling thread, or as it was there. */
type SentBatch = EventBatch & { events: SentEvent[] }

export interface Appender {
  append(org: Staging, batch: SentBatch): AppendResult
  /** Reuses a written block, because new arrays cost more than filling them. */
  recycle(content: BlockContent): void
}

const sparesMax = 64

export function appender(knownIds: KnownIds, ledger: AccessLedger): Appender {
  const sessions = new Map<string, Session>()
  const spares: BlockContent[] = []

  /** Sessions repeat soon, and their code and text cost as much as half the other fields. */
  function sessionOf(terms: Terms, sessionId: string): Session {
    const cachedSession = sessions.get(sessionId)
    if (cachedSession !== undefined) return cachedSession
    if (sessions.size >= sessionsMax) sessions.clear()
    const session = { text: JSON.stringify(sessionId), code: terms.code(member.sessionId, sessionId) }
    sessions.set(sessionId, session)
    return session
  }

  /** Null for a batch without lines of an access log. Its site counts towards the limit of the organization. */
  function openLines(org: Staging, batch: EventBatch, receivedAtMs: number): OpenLines | AccessResult | null {
    const { access } = batch
    if (access === undefined) return null
    const lines = ledger.open(batch, access, receivedAtMs)
    if ('state' in lines) return lines
    if (isHash(org.terms.code(member.siteId, access.siteId)))
      throw new StoreError('conflict', `the organization has too many sites for ${access.siteId}`)
    return lines
  }

  return {
    append(org, batch) {
      batch.events.forEach(requireWhole) // before anything is staged: a batch fails alone and completely
      const receivedAtMs = arrivalTimeMs(batch.receivedAtMs, org.receivedMs)
      const lines = openLines(org, batch, receivedAtMs)
      if (lines !== null && 'state' in lines) return withoutLines(batch, lines)
      const result: AppendResult = { accepted: 0, deduped: 0, rejected: [] }
      const key = org.terms.code(member.key, batch.keyId)
      const door = org.terms.code(member.door, batch.door)
      const judgement = judgementCodes(org.terms, key)
      const ids = batch.events.map(({ id }) => JSON.stringify(id))
      knownIds.prepare(org, ids)
      batch.events.forEach((event, index) => {
        const id = ids[index]!
        if (knownIds.has(org, id, index)) {
          result.deduped++
          lines?.deduped(index)
          return
        }
        const broken = org.terms.broken(event)
        if (broken !== null) {
          result.rejected.push({ index, member: broken, id: event.id, json: wholeJson(event, id) })
          lines?.rejected(index)
          return
        }
        const content = openBlockFor(org, ++org.lastSeq, spares)
        stage(org.terms, content, event, id, sessionOf(org.terms, event.sessionId))
        const row = content.events - 1
        content.columns[extra.at]![row] = eventTimeMs(event.occurredAtMs, receivedAtMs)
        content.columns[extra.received]![row] = receivedAtMs
        content.columns[member.key]![row] = key
        content.columns[member.door]![row] = door
        if (event.judgedBy !== null) judgement(content.columns, row, event)
        if (event.network !== null)
          org.networks.push({
            seq: org.lastSeq,
            day: Math.floor(receivedAtMs / dayMs),
            network: event.network,
          })
        knownIds.add(org, org.lastSeq)
        result.accepted++
        lines?.stored(index, event.occurredAtMs)
      })
      if (result.accepted > 0) org.receivedMs = receivedAtMs
      return lines === null ? result : { ...result, access: lines.close() }
    },
    recycle(content) {
      if (spares.length < sparesMax) spares.push(clearBlock(content))
    },
  }
}

/** Lines that are known have no new event. */
function withoutLines({ events }: EventBatch, access: AccessResult): AppendResult {
  return { accepted: 0, deduped: access.state === 'known' ? events.length : 0, rejected: [], access }
}

/** Callers have validated events. An invalid one must not be half in a block. */
function requireWhole(event: SentEvent): void {
  const { id, siteId, sessionId, type, outcome, json, occurredAtMs } = event
  const hasIds = typeof id === 'string' && typeof siteId === 'string' && typeof sessionId === 'string'
  const described =
    typeof type === 'string' && typeof outcome === 'string' && Number.isSafeInteger(occurredAtMs)
  if (!hasIds || !described) throw new StoreError('internal', 'an event lacks a required field')
  if (json.includes('\0')) throw new StoreError('internal', 'the text of an event contains a NUL')
}

// One function for all events, which reads these variables.
let stagedTerms: Terms
let staged: BlockContent

/** A field of the staged block's last event. */
function stageField(field: number, text: string): void {
  const row = staged.events - 1
  const code = stagedTerms.code(field, text)
  staged.columns[field]![row] = code
  if (isHash(code)) staged.spilled.push([row, field, text])
}

/** Adds an event to a block, except what it shares with its batch. */
function stage(terms: Terms, content: BlockContent, event: SentEvent, id: string, session: Session): void {
  const row = content.events++
  const { columns } = content // filled with zeros
  stagedTerms = terms
  staged = content
  internFields(event, stageField)
  if (event.name !== null || event.purpose !== null)
    columns[agentField]![row] = agentCode(terms, columns, row)
  columns[member.sessionId]![row] = session.code
  const { text, idAt, sessionAt } = cutOf(event, id, session.text)
  columns[extra.duration]![row] = event.durationMs ?? -1
  columns[extra.idAt]![row] = idAt
  columns[extra.sessionAt]![row] = sessionAt
  content.ids.push(id)
  content.texts.push(text)
  content.sessions.push(session.text)
}

/** The calling thread cuts texts as far as it sends them, so that they cross without what is in other columns. */
function cutOf({ json, idAt, sessionAt }: SentEvent, id: string, session: string): SplitText {
  if (idAt === undefined || sessionAt === undefined) return splitText(json, id, session)
  return { text: json, idAt, sessionAt }
}

function wholeJson(event: SentEvent, id: string): string {
  const session = JSON.stringify(event.sessionId)
  return joinText(cutOf(event, id, session), id, session)
}

/**
 * Sets the code of the judgement of a row whose verdict and judge are set. `key` is the code of the sender. A word that
 * is no verdict is counted as others are, so that senders cannot make more judgements than there are keys.
 */
function judgementCodes(terms: Terms, key: number) {
  let last = ''
  let lastCode = 0
  return (columns: Float64Array[], row: number, { verdict, judgedBy }: SentEvent): void => {
    const verdictCode =
      verdict !== null && isKnownVerdict(verdict) ? columns[member.verdict]![row]! : otherCode
    const observer = judgedBy === 'appliance' ? columns[member.observedBy]![row]! : key
    const text = judgementText(verdictCode, columns[member.judgedBy]![row]!, observer)
    if (text !== last) {
      last = text
      lastCode = terms.code(judgementField, text)
    }
    columns[judgementField]![row] = lastCode
  }
}

function agentCode(terms: Terms, columns: Float64Array[], row: number): number {
  const codeOf = (field: number) => columns[field]![row]!
  const text = agentText(codeOf(member.vendor), codeOf(member.name), codeOf(member.purpose))
  return terms.code(agentField, text)
}

function openBlockFor(org: Staging, seq: number, spares: BlockContent[]): BlockContent {
  const open = org.staged.at(-1)
  const fits =
    open !== undefined && open.content.events < blockEventsMax && segmentOf(open.firstSeq) === segmentOf(seq)
  if (fits) return open.content
  const block = { firstSeq: seq, content: spares.pop() ?? emptyBlock() }
  org.staged.push(block)
  return block.content
}
