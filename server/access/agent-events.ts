/**
 * Turns requests of an access log into events: every request by an agent, the start of its sessions, and people whom
 * an assistant sent.
 *
 * An event's id is a keyed hash of the start of its file, the offset of its line and the line. The same file therefore
 * has the same ids under another name, compressed, copied or from a pipe, and after it has grown.
 */
import { shortAddress } from '../text/short-address.ts'
import type { EventRecord, RequestKind } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'
import { trustReader } from '../http/address.ts'
import { limits } from '../limits.ts'
import type { DetectedAgent } from '../../sdk/agents/detect-agent.ts'
import { clientBehind } from '../../sdk/judge/address.ts'
import { judge, needsHostNames, type Evidence, type Judgment } from '../../sdk/judge/judge.ts'
import { accessRecords, judgedAgent, type Fields, type RequestParts } from './event-records.ts'
import { byteOrderMark, type FileParser } from './formats.ts'
import { judgedFields } from '../evidence/judged-record.ts'
import type { MarkRobots } from '../robots/judge.ts'
import type { HostNames } from '../system/host-names.ts'
import type { LogRequest } from './log-request.ts'
import type { NamedSource } from './source-names.ts'
import {
  assistantOf,
  isAsset,
  pageOf,
  storable,
  visitors,
  type Assistant,
  type Visitors,
} from './visitors.ts'

/** What a reader of a log chooses. */
export interface LogOptions {
  siteId: string
  keepQuery: string[]
  keepAddresses: boolean
  trustedProxies: string[]
}

export interface AccessOptions extends LogOptions {
  evidence: Evidence // what the claims of agents are judged by
  evidenceMaxAgeDays: number
  /** Who reads the log: `appliance`, or the key whose sender reported its lines. */
  observedBy: string
  hostNames?: HostNames | null // null: names are not looked up
  robots?: MarkRobots | null // judges by the robots.txt in force
}

/** The events of one line, and what the line counts as. */
export interface LineEvents {
  kind: RequestKind | 'bad'
  events: readonly EventRecord[] // that of an agent's request first, then the start of a session or a referral
  problem?: string // of a bad line
}

const noEvents: readonly EventRecord[] = []
const botLine: LineEvents = { kind: 'bot', events: noEvents }
const assetLine: LineEvents = { kind: 'asset', events: noEvents }
const personLine: LineEvents = { kind: 'person', events: noEvents }

const sessionGapMs = 30 * 60_000
const sessionsMax = 100_000

interface Session {
  id: string
  lastMs: number
}

export interface LineSource {
  source: NamedSource
  offset: number
  line: string
}

/** The running session of a visitor; `isNew` for its first request. */
function sessionReader(siteId: string) {
  const sessions = new Map<string, Session>()
  return (visitor: string, timeMs: number, lineSource: LineSource): { id: string; isNew: boolean } => {
    const running = sessions.get(visitor)
    if (running !== undefined && Math.abs(timeMs - running.lastMs) <= sessionGapMs) {
      running.lastMs = Math.max(running.lastMs, timeMs)
      return { id: running.id, isNew: false }
    }
    if (sessions.size >= sessionsMax) dropOld(sessions, timeMs)
    const id = idOf(siteId, lineSource, 'session')
    sessions.set(visitor, { id, lastMs: timeMs })
    return { id, isNew: true }
  }
}

export interface AgentReader {
  /** `knownAgent`: the agent, where an earlier line named it. */
  (request: LogRequest, lineSource: LineSource, knownAgent: DetectedAgent | null): LineEvents
  visitorOn: Visitors['on']
  /** The address of an agent that its host names may prove and that are not known yet; else null. */
  unproved(request: LogRequest): string | null
}

/** Reads requests one after the other, files in order of time: sessions continue from file to file. */
export function agentEvents(options: AccessOptions): AgentReader {
  const { siteId } = options
  const records = accessRecords(siteId)
  const { of: visitorOf, on: visitorOn } = visitors()
  const sessionOf = sessionReader(siteId)
  const isTrusted = trustReader(options.trustedProxies)
  /** The client's address; null when the log does not have it, because it has only that of a proxy. */
  const addressOf = ({ address, forwarded }: LogRequest): string | null => {
    if (address === null || !isTrusted(address)) return address
    const client = clientBehind(address, forwarded, isTrusted)
    return client === null || isTrusted(client) ? null : client
  }
  const judgeAt = (client: DetectedAgent, address: string | null, atMs: number): Judgment => {
    const ages = { atMs, maxAgeDays: options.evidenceMaxAgeDays }
    const hostNames = address === null ? undefined : options.hostNames?.of(address)
    return judge(client, { address, hostNames }, options.evidence, ages)
  }
  const unproved = (request: LogRequest): string | null => {
    const client = visitorOf(request.userAgent ?? '')
    if (typeof client === 'string') return null
    const address = addressOf(request)
    if (address === null) return null
    const isKnown = options.hostNames?.of(address) !== undefined
    return !isKnown && needsHostNames(client, address, options.evidence) ? address : null
  }
  const referralOf = (request: LogRequest, lineSource: LineSource): LineEvents => {
    if (isAsset(request.path)) return assetLine
    const assistant = assistantOf(request)
    if (assistant === null) return personLine
    const { timeMs } = request
    const session = sessionOf(
      `${assistant.name} ${visitorName(request, addressOf(request))}`,
      timeMs,
      lineSource,
    )
    if (!session.isNew) return personLine
    const baseFields = { id: idOf(siteId, lineSource, 'agent.referred'), siteId, sessionId: session.id }
    const event = { ...baseFields, occurredAt: isoTime(timeMs), ...referral(assistant, request, options) }
    return { kind: 'person', events: records.other(event, null) }
  }
  const eventsOf = (
    request: LogRequest,
    lineSource: LineSource,
    knownAgent: DetectedAgent | null,
  ): LineEvents => {
    const client = knownAgent ?? visitorOf(request.userAgent ?? '')
    if (client === 'program') return botLine
    if (client === 'person') return referralOf(request, lineSource)
    const { timeMs, durationMs } = request
    const address = addressOf(request)
    const judgment = judgeAt(client, address, timeMs)
    const visitor = visitorName(request, address)
    const session = sessionOf(`${client.vendor} ${client.name} ${visitor}`, timeMs, lineSource)
    const metadata = metadataOf(request, address, options)
    const id = idOf(siteId, lineSource, 'agent.requested')
    const mark = options.robots?.(client.name, request.path, timeMs) ?? null
    const outcome = outcomeOf(request.status)
    const judged = judgedFields(judgment, options.observedBy, options.evidence, () =>
      address === null ? null : shortAddress(address),
    )
    const parts = {
      id,
      sessionId: session.id,
      timeMs,
      outcome,
      durationMs,
      client,
      judgment,
      judged,
      mark,
      metadata,
    }
    const record = records.request(parts)
    const detectionEvents = session.isNew
      ? records.other(detection(parts, siteId, lineSource), judged)
      : noEvents
    if (typeof record === 'string') return { kind: 'bad', events: detectionEvents, problem: record }
    return { kind: 'agent', events: detectionEvents.length === 0 ? [record] : [record, ...detectionEvents] }
  }
  return Object.assign(eventsOf, { visitorOn, unproved })
}

/** What tells the sessions of two visitors apart. Those behind a proxy that hides them have one. */
function visitorName({ address, peerName }: LogRequest, client: string | null): string {
  return client ?? address ?? peerName ?? ''
}

/** The start of a session. */
function detection(parts: RequestParts, siteId: string, lineSource: LineSource): Fields {
  const { sessionId, timeMs, client, judgment, metadata } = parts
  const { page, host, source } = metadata
  return {
    id: idOf(siteId, lineSource, 'agent.detected'),
    siteId,
    sessionId,
    occurredAt: isoTime(timeMs),
    type: 'agent.detected',
    outcome: 'success',
    agent: judgedAgent(client, judgment),
    metadata: { page, host, source },
  }
}

/** What a line is and the events that it makes. */
export interface ReadLine {
  kind: RequestKind | 'note' | 'bad' // a comment or blank line, one that does not fit
  timeMs: number
  bytes: number
  events: readonly EventRecord[]
  problem: string | null // of a bad line; null: it does not fit the format
}

/** The result is valid until the next line is read. `offset`: of the line in the log. */
export type LineReader = (text: string, start: number, end: number, offset: number) => ReadLine

/** Reads the lines of a log one after the other. Most of them need no more than a few of their characters. */
export function lineReader(parse: FileParser, eventsOf: AgentReader, source: NamedSource): LineReader {
  const { plain = null } = parse
  const read: ReadLine = { kind: 'note', timeMs: 0, bytes: 0, events: noEvents, problem: null }
  const readAs = (kind: ReadLine['kind'], timeMs: number, bytes: number | null): ReadLine => {
    read.kind = kind
    read.timeMs = timeMs
    read.bytes = bytes ?? 0
    read.events = noEvents
    read.problem = null
    return read
  }
  return (text, start, end, offset) => {
    if (end === start) return readAs('note', 0, 0)
    const isPlain = plain !== null && plain.read(text, start, end)
    const visitor = isPlain ? eventsOf.visitorOn(plain.line) : null
    if (typeof visitor === 'string') return readAs(visitor, plain!.line.timeMs, plain!.line.bytes)
    const request = isPlain ? plain.request() : parse(text, start, end)
    if (request === null || request === 'note') return readAs(request ?? 'bad', 0, 0)
    const lineEvents = eventsOf(request, { source, offset, line: text.slice(start, end) }, visitor)
    readAs(lineEvents.kind, request.timeMs, request.bytes)
    read.events = lineEvents.events
    read.problem = lineEvents.problem ?? null
    return read
  }
}

/** The sessions that ended; without any, the oldest half. */
function dropOld(sessions: Map<string, Session>, nowMs: number): void {
  for (const [visitor, { lastMs }] of sessions)
    if (Math.abs(nowMs - lastMs) > sessionGapMs) sessions.delete(visitor)
  for (const visitor of sessions.keys()) {
    if (sessions.size <= sessionsMax / 2) return
    sessions.delete(visitor)
  }
}

const sourceBytesMax = 1024

/**
 * Identifies a file by its start up to the first line that is no comment, at most 1 KiB. More of it would change while
 * a short log grows.
 */
export function sourceId(head: string): string {
  let end = 0
  let isComment = true
  while (isComment && end < head.length) {
    isComment = head[end] === '#'
    end = head.indexOf('\n', end) + 1 || head.length
  }
  const start = head.startsWith(byteOrderMark) ? byteOrderMark.length : 0
  return Bun.SHA256.hash(head.slice(start, Math.min(end, sourceBytesMax)), 'hex')
}

/** Half of the digest is left out, so that nobody can extend a keyed one. */
function idOf(siteId: string, { source, offset, line }: LineSource, kind: string): string {
  const { name, secret } = source
  const key = secret === null ? '' : `${secret} `
  Bun.SHA256.hash(`${key}${name} ${offset} ${kind} ${siteId}\n${line}`, digest)
  return `log_${digest.toString('base64url', 0, 16)}`
}

const digest = Buffer.alloc(Bun.SHA256.byteLength)

const blockedStatuses = new Set([401, 402, 403, 407, 429, 451])

/** Contract §11. A request without a status got no response. */
function outcomeOf(status: number | null): 'success' | 'blocked' | 'error' {
  if (status === null) return 'error'
  if (blockedStatuses.has(status)) return 'blocked'
  return status < 400 ? 'success' : 'error'
}

/** Page, method, status and so on; a field that the log does not have is left out. */
function metadataOf(request: LogRequest, address: string | null, options: AccessOptions): Fields {
  const { method, status, bytes, host, path, referrer } = request
  const fields: Fields = {}
  const add = (name: string, value: unknown): void => {
    if (value !== null && value !== '') fields[name] = value
  }
  if (path !== null) add('page', storable(pageOf(path), limits.pageCharsMax))
  add('method', method)
  add('status', status)
  add('bytes', bytes)
  if (referrer !== null) add('referrerHost', storable(hostOf(referrer), hostCharsMax))
  if (host !== null) add('host', storable(host.toLowerCase().replace(/:\d+$/, ''), hostCharsMax))
  if (path !== null) add('query', queryOf(path, options.keepQuery))
  if (options.keepAddresses && address !== null) add('address', shortAddress(address))
  add('source', 'access-log')
  return fields
}

const hostCharsMax = 253
const queryValueCharsMax = 500

/** The host of a URL in a log, in lower case; '' for a URL without a host. */
function hostOf(url: string): string {
  return /^[a-z][a-z+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:]+)/i.exec(url)?.[1]?.toLowerCase() ?? ''
}

/** The parameters with these names, or null. Values of others may be personal. */
function queryOf(path: string, names: string[]): Fields | null {
  const queryStart = path.indexOf('?')
  if (queryStart < 0 || names.length === 0) return null
  const params = new URLSearchParams(path.slice(queryStart + 1))
  const entries = names.flatMap((name): [string, string][] => {
    const value = params.get(name)
    return value === null ? [] : [[name, storable(value, queryValueCharsMax)]]
  })
  return entries.length === 0 ? null : Object.fromEntries(entries)
}

function referral(assistant: Assistant, request: LogRequest, options: AccessOptions): Fields {
  const metadata = metadataOf({ ...request, bytes: null, method: null }, null, {
    ...options,
    keepAddresses: false,
  })
  const agent = { vendor: assistant.vendor, name: assistant.name, purpose: 'assistant' }
  return { type: 'agent.referred', outcome: outcomeOf(request.status), agent, metadata }
}
