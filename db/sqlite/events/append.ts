/** Takes the events of a batch one by one into the blocks that the next commit will write. */
import type { AppendResult, EventBatch, EventRecord } from '../../store.ts'
import { StoreError } from '../../errors.ts'
import { emptyBlock, extra, type StagedBlock } from './block.ts'
import type { Dedupe } from './dedupe.ts'
import { splitText } from './event-text.ts'
import { isHash, member, members } from './members.ts'
import type { OrgState } from './org-state.ts'
import { blockEventsMax, segmentOf } from './place.ts'

/** A session's id as JSON text and as a code, which is a hash and so the same in every organization. */
interface Session {
  text: string
  code: number
}

const sessionsMax = 4_096

export interface Appender {
  append(org: OrgState, batch: EventBatch): AppendResult
}

export function appender(
  known: Dedupe,
  fingerprint: (org: number, id: string) => number,
  storedHas: (org: number, seq: number, id: string) => boolean,
): Appender {
  const sessions = new Map<string, Session>()
  // One closure for all events: what is asked for lies in these variables.
  let org: OrgState
  let id = ''
  const confirm = (seq: number) =>
    stagedId(org, seq) === id || (seq <= org.storedSeq && storedHas(org.num, seq, id))

  /** Sessions come back soon, and their code and text cost as much as half the other members. */
  function sessionOf(sessionId: string): Session {
    const found = sessions.get(sessionId)
    if (found !== undefined) return found
    if (sessions.size >= sessionsMax) sessions.clear()
    const made = { text: JSON.stringify(sessionId), code: org.terms.code(member.sessionId, sessionId) }
    sessions.set(sessionId, made)
    return made
  }

  return {
    append(state, batch) {
      batch.events.forEach(requireWhole) // before anything is staged: a batch fails alone and as a whole
      org = state
      const result: AppendResult = { accepted: 0, deduped: 0, rejected: [], lastSeq: 0 }
      const key = org.terms.code(extra.key, batch.keyId)
      batch.events.forEach((event, index) => {
        id = JSON.stringify(event.id)
        const print = fingerprint(org.num, id)
        if (known.isKnown(org.num, print, confirm)) {
          result.deduped++
          return
        }
        const broken = org.terms.broken(event)
        if (broken !== null) {
          result.rejected.push({ index, member: broken })
          return
        }
        const seq = stage(org, event, id, sessionOf(event.sessionId), batch.receivedAtMs, key)
        known.add(org.num, seq, print)
        result.accepted++
        result.lastSeq = seq
      })
      return result
    },
  }
}

/** Callers have checked events; what slips through must not end up half in a block. */
function requireWhole(event: EventRecord): void {
  const { id, siteId, sessionId, type, outcome, json, occurredAtMs } = event
  const named = typeof id === 'string' && typeof siteId === 'string' && typeof sessionId === 'string'
  const told = typeof type === 'string' && typeof outcome === 'string' && Number.isSafeInteger(occurredAtMs)
  if (!named || !told) throw new StoreError('internal', 'an event lacks a member')
  if (json.includes('\0')) throw new StoreError('internal', 'the text of an event is not JSON')
}

function stage(
  org: OrgState,
  event: EventRecord,
  id: string,
  session: Session,
  receivedAtMs: number,
  key: number,
): number {
  const seq = ++org.lastSeq
  const { content } = openBlockFor(org, seq)
  const row = content.events++
  const { columns } = content
  for (let index = 0; index < members.length; index++) {
    if (index === member.sessionId) continue
    const text = event[members[index]!.name]
    if (text === null) continue // blocks begin all zero
    const code = org.terms.code(index, text)
    columns[index]![row] = code
    if (isHash(code)) content.spilled.push([row, index, text])
  }
  const { text, idAt, sessionAt } = splitText(event.json, id, session.text)
  columns[member.sessionId]![row] = session.code
  columns[extra.at]![row] = event.occurredAtMs
  columns[extra.received]![row] = receivedAtMs
  columns[extra.duration]![row] = event.durationMs ?? -1
  columns[extra.key]![row] = key
  columns[extra.idAt]![row] = idAt
  columns[extra.sessionAt]![row] = sessionAt
  content.ids.push(id)
  content.texts.push(text)
  content.sessions.push(session.text)
  return seq
}

function openBlockFor(org: OrgState, seq: number): StagedBlock {
  const open = org.staged.at(-1)
  const fits =
    open !== undefined && open.content.events < blockEventsMax && segmentOf(open.firstSeq) === segmentOf(seq)
  if (fits) return open
  const block = { firstSeq: seq, content: emptyBlock() }
  org.staged.push(block)
  return block
}

/** The id of an event that no commit has written yet. */
function stagedId(org: OrgState, seq: number): string | null {
  if (seq <= org.storedSeq) return null
  const block = org.staged.findLast(({ firstSeq }) => firstSeq <= seq)
  return block?.content.ids[seq - block.firstSeq] ?? null
}
