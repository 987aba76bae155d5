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
import { readAddress } from '../../sdk/judge/address.ts'
import type { SignatureUse } from '../../db/contract/signatures.ts'
import { createKeyring, type Keyring } from '../../sdk/judge/signature-keys.ts'
import type { ObservedSignature } from '../../sdk/judge/observe-signature.ts'
import { verifyObserved, type VerifiedSignature } from '../../sdk/judge/observed-signature.ts'
import { sha256Hex } from '../ids.ts'
import { shortAddress } from '../text/short-address.ts'
import type { HostNames } from '../system/host-names.ts'
import type { Issue } from '../errors.ts'
import type { EvidenceInForce, EvidenceReader } from '../evidence/evidence.ts'
import { judgedFields } from '../evidence/judged-record.ts'
import { limits } from '../limits.ts'
import type { Accepted, Observations } from './rejected.ts'

export interface ObservedServices {
  store: Pick<Store, 'sites' | 'signatures'>
  evidence: EvidenceReader
  evidenceMaxAgeDays: number
  hostNames: HostNames | null // null: names are not looked up
}

/** What a sender saw of one request. */
interface Observation {
  address: string | null
  signature: ObservedSignature | null
}

interface Observed extends Observation {
  record: EventRecord
  claim: Claim | null // null: only a signature claims an agent
}

/**
 * Gives the records of observed events the appliance's verdict, and returns the issues of entries that cannot be used.
 * Entries of events that are not in the request are ignored.
 */
export async function judgeObserved(
  services: ObservedServices,
  key: ApiKey,
  { records, positions, observations }: Accepted,
  arrivalMs: number,
): Promise<Issue[]> {
  const issues: Issue[] = []
  const observed = observations === undefined ? [] : readObserved(records, positions, observations, issues)
  if (observed.length === 0) return issues
  const inForce = await services.evidence.current()
  const evidence = inForce.evidence()
  await lookUpNames(services.hostNames, observed, evidence)
  const signatures = await verifySignatures(services, key, inForce, observed, arrivalMs)
  for (const [index, { record, claim, address }] of observed.entries()) {
    const signature = signatures[index]
    const hostNames = address === null ? undefined : services.hostNames?.of(address)
    const proof = { address, hostNames, ...(signature?.state === 'valid' && { signature }) }
    const judgment = judgeAt(services, claim, proof, evidence, record.occurredAtMs)
    if (signature?.state === 'invalid' && !decides(judgment)) setRefusal(judgment, signature)
    const network = () => (address === null ? null : shortAddress(address))
    Object.assign(record, judgedFields(judgment, key.id, evidence, network))
  }
  return issues
}

/** Whether the address alone proves or disproves the claim. */
function decides({ verdict }: Judgment): boolean {
  return verdict === 'verified' || verdict === 'contradicted'
}

/** The claim rests on a signature that does not count. */
function setRefusal(
  judgment: Judgment,
  { reason, keyId }: Extract<VerifiedSignature, { state: 'invalid' }>,
): void {
  judgment.verdict = 'unverifiable'
  judgment.evidence = { method: 'signature', reason, ...(keyId !== null && { keyId }) }
}

/** The keys of a pack are imported once, when the first signature is reported. */
const keyrings = new WeakMap<EvidenceInForce, Promise<Keyring>>()

function keyringOf(inForce: EvidenceInForce): Promise<Keyring> {
  let keyring = keyrings.get(inForce)
  if (keyring === undefined) keyrings.set(inForce, (keyring = createKeyring(inForce.pack.directories)))
  return keyring
}

/**
 * The signatures by event; undefined for an event without one. Each counts once among all nodes: for the request that
 * its session and time name, also when that is sent again.
 */
async function verifySignatures(
  { store }: ObservedServices,
  { orgId }: ApiKey,
  inForce: EvidenceInForce,
  observed: readonly Observed[],
  arrivalMs: number,
): Promise<(VerifiedSignature | undefined)[]> {
  if (observed.every(({ signature }) => signature === null)) return []
  const keyring = await keyringOf(inForce)
  const sites = new Map((await store.sites.list(orgId)).map(({ siteId, hosts }) => [siteId, hosts]))
  const verified: (VerifiedSignature | undefined)[] = []
  const uses: SignatureUse[] = []
  const usedBy: number[] = []
  for (const { record, signature } of observed) {
    const hosts = sites.get(record.siteId) ?? []
    const result =
      signature === null ? undefined : await verifyObserved(signature, { keyring, hosts, arrivalMs })
    if (result?.state === 'valid') {
      const hash = sha256Hex(result.use)
      const { siteId, sessionId, occurredAtMs } = record
      const owner = sha256Hex(JSON.stringify([hash, orgId, siteId, sessionId, occurredAtMs]))
      uses.push({ hash, owner, expiresAtMs: result.untilMs })
      usedBy.push(verified.length)
    }
    verified.push(result)
  }
  if (uses.length === 0) return verified
  const isNew = await store.signatures.use({ uses })
  for (const [use, index] of usedBy.entries()) {
    const result = verified[index]
    if (!isNew[use] && result?.state === 'valid')
      verified[index] = { state: 'invalid', reason: 'replayed', keyId: result.keyId }
  }
  return verified
}

function judgeAt(
  { evidenceMaxAgeDays: maxAgeDays }: ObservedServices,
  claim: Claim | null,
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
    if (address !== null && claim !== null && hostNames.of(address) === undefined)
      if (needsHostNames(claim, address, evidence)) addresses.add(address)
  if (addresses.size > 0) await hostNames.lookUp(addresses)
}

/** Looks for the entry of each event, so that the work is bounded by the events and not by the entries. */
function readObserved(
  records: readonly EventRecord[],
  positions: readonly number[],
  { entries, events, isTooLarge = false }: Observations,
  issues: Issue[],
): Observed[] {
  if (isTooLarge) {
    const message = `must have at most ${limits.observedBytesMax} bytes`
    issues.push({ path: 'observed', code: 'too_large', message })
    return []
  }
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
    if (claim !== null || observation.signature !== null) observed.push({ ...observation, record, claim })
  }
  return observed
}

/** The observation, or what is wrong with it. The message quotes nothing, because it leaves the request. */
function readEntry(entry: unknown): Observation | string {
  if (!isObject(entry)) return 'must be an object with an address'
  const signature = readSignature(entry['signature'])
  if (signature === undefined)
    return `must have a signature with base, signature and keyId, of at most ${limits.observedBaseBytesMax} bytes`
  const address = entry['address'] ?? null
  // Some runtimes do not know the address of a request that is signed.
  if (address === null && signature !== null) return { address, signature }
  if (typeof address !== 'string' || address.length > limits.observedAddressCharsMax)
    return `must have an address of at most ${limits.observedAddressCharsMax} characters`
  const client = readAddress(address)
  if (client === null) return 'must have an IPv4 or IPv6 address'
  return { address: client, signature }
}

const signatureCharsMax = 100 // 64 bytes as base64
const keyIdCharsMax = 200

/** Null without a signature, undefined for one that is malformed. */
function readSignature(value: unknown): ObservedSignature | null | undefined {
  if (value === undefined || value === null) return null
  if (!isObject(value)) return undefined
  const { base, signature, keyId } = value
  if (typeof base !== 'string' || Buffer.byteLength(base) > limits.observedBaseBytesMax) return undefined
  if (typeof signature !== 'string' || signature.length > signatureCharsMax) return undefined
  if (typeof keyId !== 'string' || keyId.length > keyIdCharsMax) return undefined
  return { base, signature, keyId }
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
  const cachedClaim = detectedAgents.get(userAgent)
  if (cachedClaim !== undefined) return cachedClaim
  const detected = detectAgent(userAgent)
  if (detectedAgents.size >= userAgentsMax) detectedAgents.clear()
  detectedAgents.set(userAgent, detected)
  return detected
}

function isObject(value: unknown): value is { [field: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
