/**
 * The appliance's side of reading logs: stores their lines in the order of the log, remembers running sessions and who
 * reads which file.
 */
import { applianceObserver } from '../../db/contract/provenance.ts'
import type {
  AccessLines,
  AccessResult,
  ApiKey,
  Door,
  EventRecord,
  RequestKind,
  Store,
} from '../../db/contract/store.ts'
import type { Evidence } from '../../sdk/judge/judge.ts'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { inSlices, slices } from '../http/slices.ts'
import { importKeyId, newToken } from '../ids.ts'
import { writeOrExplain, type AdmissionServices } from '../ingest/admission.ts'
import type { EvidenceReader } from '../evidence/evidence.ts'
import type { RobotsReader } from '../robots/judge.ts'
import {
  agentEvents,
  lineReader,
  type AccessOptions,
  type AgentReader,
  type LineReader,
  type LogOptions,
  type ReadLine,
} from './agent-events.ts'
import { makeClaims, type WatchedLog } from './claims.ts'
import { byteOrderMark, formatNamed, type FileParser } from './formats.ts'
import type { HostNames } from '../system/host-names.ts'
import { lookUpAgents } from './look-up-agents.ts'
import { findSource, type NamedSource } from './source-names.ts'
import { lineBatch, tailHash, type LineBatch } from './line-batch.ts'
import { lineBytesMax } from './input.ts'
import { lastLine } from './log-files.ts'
import {
  addSums,
  noLines,
  type LineError,
  type LineSums,
  type LogLines,
  type LogPosition,
  type LogStatus,
  type StoreAnswer,
} from './sink.ts'

/** Who sends lines. */
export interface Sender {
  orgId: string
  keyId: ApiKey['id']
  /** `syslog` and `access-log` name who read the lines: this machine, or the sender with the key. */
  door: Door
  options: LogOptions
  /** Claims its logs, so that no other reader takes them; null for a client that just sends. */
  reader: string | null
}

export interface ReceiverServices extends Pick<AdmissionServices, 'disk' | 'fail'> {
  store: Pick<Store, 'events' | 'accessLogs' | 'secret'>
  clock: Clock
  arrivalMs(): number
  evidence: EvidenceReader
  evidenceMaxAgeDays: number
  hostNames: HostNames | null // null: names are not looked up
  robots: RobotsReader
  /** Sessions of several nodes cannot be in the memory of one. */
  isShared: boolean
}

export interface AccessReceiver {
  position(sender: Sender, status: LogStatus): Promise<LogPosition>
  store(sender: Sender, lines: LogLines, isDrain?: boolean): Promise<StoreAnswer>
  warm(sender: Sender, lines: LogLines): Promise<void>
  watched(orgId: string): WatchedLog[]
  /** What this process has stored, since it started. */
  requests(): RequestCount[]
  /** Lines that this process could not read, by where they came from, since it started. */
  badLines(): BadLineCount[]
}

export interface BadLineCount {
  door: Door
  lines: number
}

export interface RequestCount {
  kind: RequestKind
  verdict: string | null // of agents
  requests: number
}

/** The sessions of a site, and what they were read from. */
interface Memory {
  options: AccessOptions // with the evidence and the robots.txt in force
  eventsOf: AgentReader
  warmed: Set<string>
  running: Promise<unknown> // one after the other, in the order of the log
}

/** Each with at most 100,000 sessions. A site whose sessions were dropped begins new ones. */
const memoriesMax = 40

export function makeReceiver(services: ReceiverServices): AccessReceiver {
  const epoch = services.isShared ? 'shared' : newToken()
  const memories = new Map<string, Memory>()
  const claims = makeClaims(services.clock)
  const requests = requestCounts()
  const nameOf = ({ orgId, keyId, options }: Sender): string => JSON.stringify([orgId, keyId, options])
  const memoryOf = (sender: Sender): Memory | undefined => memories.get(nameOf(sender))
  const openMemory = async (sender: Sender): Promise<Memory> => {
    const evidence = (await services.evidence.current()).evidence()
    const name = nameOf(sender)
    const memory = memories.get(name) ?? newMemory(sender, evidence, services)
    memory.options.evidence = evidence
    memory.options.robots = await services.robots.of(sender.orgId, sender.options.siteId)
    memories.delete(name)
    memories.set(name, memory)
    if (memories.size > memoriesMax) memories.delete(memories.keys().next().value!)
    return memory
  }
  /** After a failure the sessions have seen lines that are not stored, so they are read again. */
  const inOrder = async <T>(sender: Sender, work: (memory: Memory) => Promise<T>): Promise<T> => {
    const memory = await openMemory(sender)
    const result = memory.running.then(() => work(memory))
    memory.running = result.catch(() => {
      memory.eventsOf = agentEvents(memory.options)
      memory.warmed.clear()
    })
    return result
  }
  return {
    async position(sender, status) {
      claims.claim(sender, status)
      const { source } = status
      const { siteId } = sender.options
      const key = { orgId: sender.orgId, siteId }
      const storedPosition =
        source === null ? null : (await findSource(services.store, { ...key, source })).known
      const isWarm = services.isShared || source === null || memoryOf(sender)?.warmed.has(source) === true
      return { position: storedPosition?.position ?? 0, tail: storedPosition?.tail ?? '', epoch, isWarm }
    },
    async store(sender, lines, isDrain = false) {
      requireEpoch(lines, epoch)
      claims.renew(sender, lines)
      return inOrder(sender, async (memory) => {
        const source = await sourceOf(services.store, sender, lines)
        return storeLines({ ...services, requests }, { sender, lines, source, memory, isDrain })
      })
    },
    async warm(sender, lines) {
      requireEpoch(lines, epoch)
      claims.renew(sender, lines)
      await inOrder(sender, async (memory) => {
        const source = await sourceOf(services.store, sender, lines)
        const steps = batchesOf({ sender, lines, source, memory, isDrain: false })
        await inSlices(steps, slices.begin(sender.orgId))
        memory.warmed.add(lines.source)
      })
    },
    watched: claims.watched,
    requests: requests.list,
    badLines: requests.listBad,
  }
}

type Judging = Pick<ReceiverServices, 'evidenceMaxAgeDays' | 'hostNames'>

function newMemory(
  { options: logOptions, keyId }: Sender,
  evidence: Evidence,
  { evidenceMaxAgeDays, hostNames }: Judging,
): Memory {
  const observedBy = keyId === importKeyId ? applianceObserver : keyId
  const options = { ...logOptions, evidence, evidenceMaxAgeDays, hostNames, observedBy }
  return { options, eventsOf: agentEvents(options), warmed: new Set(), running: Promise.resolve() }
}

/** The reader then asks for its position again, and reads the sessions into the new memory. */
function requireEpoch({ epoch: sentEpoch }: LogLines, epoch: string): void {
  if (sentEpoch !== '' && sentEpoch !== epoch)
    throw new AppError('unavailable', 'The appliance was restarted. Ask for the position of the log again.')
}

function parserOf({ format, heading }: LogLines): FileParser {
  const parse = formatNamed(format).open()
  if (heading !== '') parse(heading, 0, heading.length)
  return parse
}

function sourceOf(store: ReceiverServices['store'], sender: Sender, lines: LogLines): Promise<NamedSource> {
  const { siteId } = sender.options
  return findSource(store, { orgId: sender.orgId, siteId, source: lines.source })
}

function* batchesOf({ sender, lines, source, memory, isDrain }: Storing): Generator<LinesToStore | null> {
  const parse = parserOf(lines)
  const { siteId } = sender.options
  yield* lineBatches({ lines, source, siteId, isDrain, parse, eventsOf: memory.eventsOf })
}

interface Storing {
  sender: Sender
  lines: LogLines
  source: NamedSource // of the lines
  memory: Memory
  isDrain: boolean
}

interface StoringServices extends ReceiverServices {
  requests: ReturnType<typeof requestCounts>
}

function requestCounts() {
  const counts = new Map<string, RequestCount>()
  const add = (kind: RequestKind, verdict: string | null, requests: number): void => {
    const name = `${kind} ${verdict}`
    const count = counts.get(name) ?? { kind, verdict, requests: 0 }
    counts.set(name, { ...count, requests: count.requests + requests })
  }
  const bad = new Map<Door, number>()
  return {
    addBad(door: Door, lines: number): void {
      if (lines > 0) bad.set(door, (bad.get(door) ?? 0) + lines)
    },
    listBad: () => [...bad].map(([door, lines]) => ({ door, lines })),
    add({ events, access }: LinesToStore): void {
      events.forEach(
        ({ verdict }, index) => access.requests[index] !== null && add('agent', verdict ?? null, 1),
      )
      for (const { kind, requests } of access.counts) add(kind, null, requests)
    },
    list: () => [...counts.values()],
  }
}

async function storeLines(services: StoringServices, storing: Storing): Promise<StoreAnswer> {
  const { sender, lines, memory } = storing
  const answer: StoreAnswer = { state: 'known', position: lines.to, tail: '', sums: noLines(), errors: [] }
  const work = slices.begin(sender.orgId)
  if (services.hostNames !== null)
    await lookUpAgents(services.hostNames, lines.text, parserOf(lines), memory.eventsOf.unproved, work)
  for (const batch of batchesOf(storing)) {
    if (batch === null) {
      await work.pause()
      continue
    }
    const { events, access, sums, errors } = batch
    const { orgId, keyId, door } = sender
    const receivedAtMs = Math.round(services.arrivalMs())
    const result = await writeOrExplain(
      services,
      services.store.events.append({ orgId, keyId, door, receivedAtMs, events, access }),
    )
    const { state, position, tail } = result.access!
    if (state === 'behind')
      return (await storeRest(services, storing, position, tail)) ?? { ...answer, state, position, tail }
    if (state === 'stored') {
      answer.state = state
      services.requests.add(batch)
    }
    Object.assign(answer, { position, tail })
    settleSums(batch, result.access!)
    if (state === 'stored') services.requests.addBad(door, sums.bad)
    answer.errors.push(...errors.slice(0, lineErrorsMax - answer.errors.length))
    addSums(answer.sums, sums)
  }
  memory.warmed.add(lines.source)
  return answer
}

/** Lines of which the first ones are stored already, as of a request that is sent again; null when these are others. */
async function storeRest(
  services: StoringServices,
  storing: Storing,
  position: number,
  tail: string,
): Promise<StoreAnswer | null> {
  const { lines } = storing
  const splitOffset = position - lines.from
  if (
    splitOffset <= 0 ||
    splitOffset >= lines.text.length ||
    tailHash(lastLine(lines.text, splitOffset)) !== tail
  )
    return null
  const first = { ...lines, to: position, text: lines.text.slice(0, splitOffset) }
  const newLines = { ...lines, from: position, text: lines.text.slice(splitOffset) }
  const knownAnswer = await storeLines(services, { ...storing, lines: first })
  if (knownAnswer.state === 'behind') return knownAnswer
  const stored = await storeLines(services, { ...storing, lines: newLines })
  addSums(stored.sums, knownAnswer.sums)
  const knownLineCount = knownAnswer.sums.lines
  const later = stored.errors.map(({ line, message }) => ({ line: line + knownLineCount, message }))
  return { ...stored, errors: [...knownAnswer.errors, ...later].slice(0, lineErrorsMax) }
}

/** Of the requests by agents in a batch, which all counted as stored. */
function settleSums({ sums, errors }: LinesToStore, { stored, deduped, rejected }: AccessResult): void {
  sums.stored = stored
  sums.deduped = deduped
  sums.bad += rejected
  if (rejected > 0)
    errors.push({ line: 0, message: 'has more distinct values than an organization may store' })
}

/** What one transaction stores. `sums` has all requests by agents as stored. */
interface LinesToStore {
  events: EventRecord[]
  access: AccessLines
  sums: LineSums
  errors: LineError[]
}

interface LineReading {
  lines: LogLines
  source: NamedSource
  siteId: string
  isDrain: boolean
  parse: FileParser
  eventsOf: AgentReader
}

const lineErrorsMax = 20
const pathCharsMax = 1_024
const formatCharsMax = 200

/** Reading this many characters, or this many lines, takes about a millisecond. */
const pauseChars = 16 * 1024
const pauseLines = 256

/**
 * Batches of whole lines, as a reader sends them. The lines of each follow those of the one before. Null where others
 * may run.
 */
export function* lineBatches(reading: LineReading): Generator<LinesToStore | null> {
  const { lines, siteId, isDrain } = reading
  const { text, from, to, cutTail } = lines
  const { source } = reading
  const log = {
    siteId,
    source: source.name,
    path: lines.path.slice(0, pathCharsMax),
    format: lines.format.slice(0, formatCharsMax),
  }
  const read = lineReader(reading.parse, reading.eventsOf, source)
  let batch = lineBatch(log, from, { isDrain })
  let errors: LineError[] = []
  let offset = from === 0 && text.startsWith(byteOrderMark) ? byteOrderMark.length : 0
  let number = 0
  let pausedAt = offset
  while (offset < text.length) {
    if (offset - pausedAt > pauseChars || number % pauseLines === 0) {
      pausedAt = offset
      yield null
    }
    number++
    const feed = text.indexOf('\n', offset)
    const next = cutTail !== null || feed < 0 ? text.length : feed + 1
    const line = readOne(lines, read, offset, feed < 0 ? text.length : feed)
    const end = cutTail === null ? from + next : to
    const { kind, timeMs, bytes, events } = line
    if (events.length === 0) batch.count(end, kind, timeMs, bytes)
    else batch.add({ number, end, kind, timeMs, bytes, events })
    if (kind === 'bad' && errors.length < lineErrorsMax)
      errors.push({ line: number, message: line.problem ?? `does not fit ${lines.format}` })
    offset = next
    if (batch.isFull() && offset < text.length) {
      yield toStore(batch, errors, lastLine(text, offset))
      batch = lineBatch(log, from + offset, { isDrain })
      errors = []
    }
  }
  if (batch.lines > 0)
    yield toStore(batch, errors, cutTail === null ? lastLine(text, offset) : { hash: cutTail })
}

const carriageReturn = 13
const longLine: ReadLine = {
  kind: 'bad',
  timeMs: 0,
  bytes: 0,
  events: [],
  problem: 'is longer than 64 KiB',
}

function readOne(
  { text, from, cutTail }: LogLines,
  read: LineReader,
  offset: number,
  stop: number,
): ReadLine {
  // After a truncation, a server that did not open its log to append writes at its old offset, behind NUL bytes.
  let start = offset
  while (start < stop && text.charCodeAt(start) === 0) start++
  const end = stop > start && text.charCodeAt(stop - 1) === carriageReturn ? stop - 1 : stop
  if (cutTail !== null || end - start > lineBytesMax) return longLine
  return read(text, start, end, from + start)
}

function toStore(batch: LineBatch, errors: LineError[], tail: string | { hash: string }): LinesToStore {
  const { events, access } = batch.sent(typeof tail === 'string' ? tail : '')
  if (typeof tail !== 'string') access.tail = tail.hash
  const { lines, people, excluded, bad } = access.sums
  const sums = { ...noLines(), lines, people, excluded, bad, stored: lines - people - excluded - bad }
  return { events, access, sums, errors }
}
