/**
 * Judges events by what their sender observed of the requests: `observed` beside `events` (contract §17). The addresses
 * live in this request only. Nothing here fails a request: an entry that cannot be used leaves its event unjudged.
 */
import type { ApiKey, EventRecord, Store } from '../../db/contract/store.ts'
import { detectAgent } from '../../sdk/agents/detect-agent.ts'
import {
  judge,
  needsHostNames,
  type Claim,
  type Evidence,
  type Judgment,
  type Proof,
} from '../../sdk/judge/judge.ts'
import { parseAddress } from '../../sdk/judge/networks.ts'
import { shortAddress } from '../access/agent-events.ts'
import type { HostNames } from '../access/host-names.ts'
import type { Issue } from '../errors.ts'
import type { EvidenceReader } from '../evidence/evidence.ts'
import { judgedFields } from '../evidence/judged-record.ts'
import { limits } from '../limits.ts'
import type { Accepted, Observations } from './rejected.ts'

export interface ObservedServices {
  store: Pick<Store, 'sites'>
  evidence: EvidenceReader
  evidenceMaxAgeDays: number
  hostNames: HostNames | null // null: names are not looked up
}

/** What a sender saw of one request. */
interface Observation {
  address: string | null
}

interface Observed extends Observation {
  record: EventRecord
  claim: Claim
}

/**
 * Gives the records of observed events the appliance's verdict, and returns the issues of entries that cannot be used.
 * Entries of events that are not in the request are ignored.
 */
export async function judgeObserved(
  services: ObservedServices,
  key: ApiKey,
  { records, positions, observations }: Accepted,
): Promise<Issue[]> {
  const issues: Issue[] = []
  const observed = observations === undefined ? [] : readObserved(records, positions, observations, issues)
  if (observed.length === 0) return issues
  const evidence = (await services.evidence.current()).evidence()
  await lookUpNames(services.hostNames, observed, evidence)
  for (const { record, claim, address } of observed) {
    const proof = { address, hostNames: address === null ? undefined : services.hostNames?.of(address) }
    const judgment = judgeAt(services, claim, proof, evidence, record.occurredAtMs)
    const network = address === null ? null : shortAddress(address)
    Object.assign(record, judgedFields(judgment, key.id, evidence, network))
  }
  return issues
}

function judgeAt(
  { evidenceMaxAgeDays: maxAgeDays }: ObservedServices,
  claim: Claim,
  proof: Proof,
  evidence: Evidence,
  atMs: number,
): Judgment {
  return judge(claim, proof, evidence, { atMs, maxAgeDays })
}

/** Names are looked up before anything is judged, because judging is synchronous. */
async function lookUpNames(
  hostNames: HostNames | null,
  observed: readonly Observed[],
  evidence: Evidence,
): Promise<void> {
  if (hostNames === null) return
  const addresses = new Set<string>()
  for (const { claim, address } of observed)
    if (address !== null && hostNames.of(address) === undefined && needsHostNames(claim, address, evidence))
      addresses.add(address)
  if (addresses.size > 0) await hostNames.lookUp(addresses)
}

/** Looks for the entry of each event, so that the work is bounded by the events and not by the entries. */
function readObserved(
  records: readonly EventRecord[],
  positions: readonly number[],
  { entries, events }: Observations,
  issues: Issue[],
): Observed[] {
  if (!isObject(entries)) {
    issues.push({ path: 'observed', code: 'wrong_type', message: 'must be an object of entries by event id' })
    return []
  }
  const observed: Observed[] = []
  for (let row = 0; row < records.length; row++) {
    const record = records[row]!
    if (!Object.hasOwn(entries, record.id)) continue
    const index = positions[row]!
    const observation = readEntry(entries[record.id])
    if (typeof observation === 'string') {
      if (issues.length < limits.observedIssuesMax)
        issues.push({ path: 'observed', code: 'wrong_format', message: observation, index, id: record.id })
      continue
    }
    const claim = claimOf(events[index], record)
    // People are never judged: without a claim there is nothing to prove.
    if (claim !== null) observed.push({ ...observation, record, claim })
  }
  return observed
}

const words = new Uint32Array(4)

/** The observation, or what is wrong with it. The message quotes nothing, because it leaves the request. */
function readEntry(entry: unknown): Observation | string {
  if (!isObject(entry)) return 'must be an object with an address'
  const { address } = entry
  if (typeof address !== 'string' || address.length > limits.observedAddressCharsMax)
    return `must have an address of at most ${limits.observedAddressCharsMax} characters`
  if (!parseAddress(address, words)) return 'must have an IPv4 or IPv6 address'
  return { address }
}

/** What the user agent claims; what the sender's SDK detected where it says nothing. */
function claimOf(event: unknown, { vendor, name }: EventRecord): Claim | null {
  const agent = isObject(event) && isObject(event['agent']) ? event['agent'] : {}
  const userAgent = agent['userAgent']
  const detected = typeof userAgent === 'string' && userAgent !== '' ? detectCached(userAgent) : null
  if (detected !== null) return detected
  return vendor === null || name === null ? null : { vendor, name }
}

const userAgentsMax = 10_000
const detectedAgents = new Map<string, Claim | null>()

/** A site sees a few thousand user agents. */
function detectCached(userAgent: string): Claim | null {
  const known = detectedAgents.get(userAgent)
  if (known !== undefined) return known
  const detected = detectAgent(userAgent)
  if (detectedAgents.size >= userAgentsMax) detectedAgents.clear()
  detectedAgents.set(userAgent, detected)
  return detected
}

function isObject(value: unknown): value is { [field: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
