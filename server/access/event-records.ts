/**
 * Makes the records of events of access logs. Nearly all of them are requests whose parts are valid by construction, so
 * their text is joined from these parts; every other event passes the checks of ingest. Both give the same record
 * (`event-records.test.ts`).
 */
import { recordFields } from '../../db/contract/event-fields.ts'
import type { EventRecord } from '../../db/contract/store.ts'
import type { DetectedAgent } from '../../sdk/agents/detect-agent.ts'
import { trustOf, type Judgment } from '../../sdk/judge/judge.ts'
import { isoTime } from '../clock.ts'
import { acceptMade, mayContainUnstorable } from '../ingest/check-event.ts'
import { limits } from '../limits.ts'
import type { JudgedFields } from '../evidence/judged-record.ts'
import type { RobotsMark } from '../robots/judge.ts'
import { isLongerThan } from '../text/text.ts'

export type Fields = { [field: string]: unknown }

export interface RequestParts {
  id: string
  sessionId: string
  timeMs: number
  outcome: string
  durationMs: number | null
  client: DetectedAgent
  judgment: Judgment
  judged: JudgedFields // of the record
  mark: RobotsMark | null
  metadata: Fields
}

export interface AccessRecords {
  /** Of a request by an agent; a text says why ingest would reject it. */
  request(parts: RequestParts): EventRecord | string
  /** Of any other event. None when ingest would reject it. */
  other(event: Fields, judged: JudgedFields | null): EventRecord[]
}

/** A request of an access log leaves out the others. */
const noFields = Object.fromEntries(recordFields.map((name) => [name, null])) as {
  [name in (typeof recordFields)[number]]: null
}

/** An agent with a verdict on it, as text; logs repeat a few hundred of them. */
interface AgentText {
  json: string
  trust: string
}

/** Longer metadata is checked, so that no event exceeds the limit of its size. */
const metadataCharsMax = 8_000
const verdictsMax = 1_000

export function accessRecords(siteId: string): AccessRecords {
  const site = JSON.stringify(siteId)
  const isValidSite = siteId !== '' && !isLongerThan(siteId, limits.idCharsMax) && siteId.isWellFormed()
  const isPlainSite = isValidSite && !siteId.includes('\0')
  const agents = new WeakMap<DetectedAgent, Map<string, AgentText>>()
  const timeText = timeReader()

  function agentOf(client: DetectedAgent, judgment: Judgment): AgentText {
    const { verdict, evidence } = judgment
    const key =
      evidence === undefined
        ? verdict
        : `${verdict} ${evidence.method} ${evidence.list} ${evidence.listDate} ${evidence.networks} ${evidence.reason}`
    let texts = agents.get(client)
    const cachedText = texts?.get(key)
    if (cachedText !== undefined) return cachedText
    if (texts === undefined || texts.size >= verdictsMax) agents.set(client, (texts = new Map()))
    const agentText = { json: JSON.stringify(judgedAgent(client, judgment)), trust: trustOf(verdict) }
    texts.set(key, agentText)
    return agentText
  }

  function request(parts: RequestParts): EventRecord | string {
    const { id, sessionId, timeMs, outcome, client, judgment, mark, metadata } = parts
    const details = JSON.stringify(metadata)
    const isPlain = isPlainSite && parts.durationMs === null && details.length <= metadataCharsMax
    if (!isPlain || mayContainUnstorable(details)) return checkedRequest(siteId, parts)
    const { json, trust } = agentOf(client, judgment)
    const agent = mark === null ? json : `${json.slice(0, -1)},${JSON.stringify(mark).slice(1)}`
    const start = `{"id":"${id}","siteId":${site},"sessionId":"${sessionId}","occurredAt":"${timeText(timeMs)}"`
    const type = 'agent.requested'
    return {
      ...noFields,
      id,
      siteId,
      sessionId,
      occurredAtMs: Math.trunc(timeMs),
      type,
      outcome,
      durationMs: null,
      class: client.class,
      vendor: client.vendor,
      name: client.name,
      purpose: client.purpose,
      robots: mark?.robots ?? null,
      trust,
      ...parts.judged,
      page: (metadata['page'] as string | undefined) ?? null,
      json: `${start},"type":"${type}","outcome":"${outcome}","agent":${agent},"metadata":${details}}`,
    }
  }

  return {
    request,
    other: (event, judged) => acceptMade([event]).records.map((record) => Object.assign(record, judged)),
  }
}

/** The agent with the verdict on its claim. */
export function judgedAgent(client: DetectedAgent, { verdict, evidence }: Judgment): Fields {
  return { ...client, trust: trustOf(verdict), verdict, ...(evidence && { evidence }) }
}

function checkedRequest(siteId: string, parts: RequestParts): EventRecord | string {
  const { id, sessionId, timeMs, outcome, durationMs, client, judgment, mark, metadata } = parts
  const { records, rejected } = acceptMade([
    {
      id,
      siteId,
      sessionId,
      occurredAt: isoTime(timeMs),
      type: 'agent.requested',
      outcome,
      ...(durationMs === null ? {} : { durationMs }),
      agent: { ...judgedAgent(client, judgment), ...mark },
      metadata,
    },
  ])
  const [record] = records
  return record === undefined ? rejected[0]!.message : Object.assign(record, parts.judged)
}

/** Lines of one second share their time. */
function timeReader(): (ms: number) => string {
  let last = Number.NaN
  let text = ''
  return (ms) => {
    if (ms !== last) [last, text] = [ms, isoTime(ms)]
    return text
  }
}
