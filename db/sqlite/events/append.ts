/** Takes the events of a batch one by one into the blocks that the next commit will write. */
import type { AppendResult, EventBatch, EventRecord } from '../../store.ts'
import { StoreError } from '../../errors.ts'
import { emptyBlock, extra, type StagedBlock } from './block.ts'
import type { Dedupe } from './dedupe.ts'
import { splitText } from './event-text.ts'
import { isHash, member, members } from './members.ts'
import type { OrgState } from './org-state.ts'
import { blockEventsMax, segmentOf } from './place.ts'

export interface Appender {
  append(org: OrgState, batch: EventBatch): AppendResult
}

export function appender(
  known: Dedupe,
  fingerprint: (org: number, id: string) => number,
  storedHas: (org: number, seq: number, id: string) => boolean,
): Appender {
  // One closure for all events: what is asked for lies in these variables.
  let org: OrgState
  let id = ''
  const confirm = (seq: number) =>
    stagedId(org, seq) === id || (seq <= org.storedSeq && storedHas(org.num, seq, id))

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
        const seq = stage(org, event, id, batch.receivedAtMs, key)
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
  for (const text of [id, siteId, sessionId, type, outcome, json]) {
    if (typeof text !== 'string') throw new StoreError('internal', 'an event lacks a member')
  }
  if (!Number.isSafeInteger(occurredAtMs))
    throw new StoreError('internal', 'the time of an event is no integer')
  if (json.includes('\0')) throw new StoreError('internal', 'the text of an event is not JSON')
}

function stage(org: OrgState, event: EventRecord, id: string, receivedAtMs: number, key: number): number {
  const seq = ++org.lastSeq
  const { content } = openBlockFor(org, seq)
  const row = content.events++
  const { columns } = content
  for (let index = 0; index < members.length; index++) {
    const text = event[members[index]!.name]
    if (text === null) continue // blocks begin all zero
    const code = org.terms.code(index, text)
    columns[index]![row] = code
    if (isHash(code) && index !== member.sessionId) content.spilled.push([row, index, text])
  }
  const session = JSON.stringify(event.sessionId)
  const { text, idAt, sessionAt } = splitText(event.json, id, session)
  columns[extra.at]![row] = event.occurredAtMs
  columns[extra.received]![row] = receivedAtMs
  columns[extra.duration]![row] = event.durationMs ?? -1
  columns[extra.key]![row] = key
  columns[extra.idAt]![row] = idAt
  columns[extra.sessionAt]![row] = sessionAt
  content.ids.push(id)
  content.texts.push(text)
  content.sessions.push(session)
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
