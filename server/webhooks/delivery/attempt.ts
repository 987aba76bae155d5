/** One attempt at one delivery: check the address, sign, send, and say in one value what came of it. */
import type { Claim } from '../../../db/contract/webhooks.ts'
import type { Clock } from '../../clock.ts'
import type { SecretBox } from '../../system/secrets.ts'
import { classify, statusFault, type Fault } from './failure.ts'
import { post, sendDatagrams, sendStream, type Route } from './send.ts'
import { excerptText } from './excerpt.ts'
import { appendLines } from '../sinks/file.ts'
import { messageLines } from '../sinks/message-lines.ts'
import { isPrivateName } from './resolve.ts'
import type { Resolution, Resolve } from './resolve.ts'
import { sealPurpose } from './signing.ts'
import { signedHeaders } from './signing.ts'
import { datagram, octetCounted, syslogMessage, thisSource } from '../sinks/syslog.ts'
import { readTarget, RefusedUrl, type HttpTarget, type SyslogTarget } from './destination.ts'

export interface AttemptParts {
  clock: Clock
  box: SecretBox
  resolve: Resolve
  version: string
  sinkDir: string | null
  ca: string | null
  proxy: string | null
  timeoutMs: number
}

export interface AttemptResult {
  atMs: number
  durationMs: number
  status: number | null
  excerpt: string
  retryAfterMs: number | null
  fault: Fault | null // null: delivered
}

/** A timer that fires this late says that the process itself stood still, not the receiver. */
const lateMs = 2_000

/** Never rejects. `stop` ends it early, as a fault of ours. */
export async function attempt(parts: AttemptParts, claim: Claim, stop: AbortSignal): Promise<AttemptResult> {
  const atMs = parts.clock.now()
  const startedMs = performance.now()
  const answer = await send(parts, claim, atMs, stop).catch((thrown: unknown) =>
    failed(classify(thrown, stop.aborted)),
  )
  const durationMs = Math.round(performance.now() - startedMs)
  const stood = answer.fault?.code === 'timeout' && durationMs > parts.timeoutMs + lateMs
  const fault = stood
    ? { code: 'interrupted', message: 'the appliance stood still meanwhile', ours: true }
    : answer.fault
  return { ...answer, fault, atMs, durationMs }
}

type Answered = Pick<AttemptResult, 'status' | 'excerpt' | 'retryAfterMs' | 'fault'>

const delivered: Answered = { status: null, excerpt: '', retryAfterMs: null, fault: null }
const failed = (fault: Fault): Answered => ({ ...delivered, fault })
const refused = (why: string) => failed({ code: 'url_blocked', message: why, ours: false })

/**
 * A name that leads inside fails in the same words as one that does not exist: whoever may add an endpoint must not
 * learn the names of the network around the appliance. Its operator reads which it was in the log.
 */
function refusedName(
  host: string,
  resolution: Extract<Resolution, { kind: 'refused' | 'unknown' }>,
): Answered {
  const message = 'the host name is unknown, or leads to an address that deliveries may not reach'
  const what = resolution.kind === 'refused' ? `${resolution.address}: ${resolution.why}` : 'unknown'
  return failed({ code: 'url_blocked', message, ours: false, detail: `${host} is ${what}` })
}

async function send(parts: AttemptParts, claim: Claim, atMs: number, stop: AbortSignal): Promise<Answered> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(parts.timeoutMs)])
  let target
  try {
    target = readTarget(claim.delivery.url, parts.sinkDir)
  } catch (error) {
    if (error instanceof RefusedUrl) return refused(error.message)
    throw error
  }
  if (target.kind === 'file') {
    await appendLines(parts.sinkDir!, target.path, messageLines(claim.delivery.body))
    return delivered
  }
  const plain = parts.resolve.known(target.host)
  if (plain?.kind === 'refused') return refused(`${target.host}: ${plain.why}`)
  const resolution = plain ?? (await parts.resolve(target.host))
  if (target.kind === 'http' && parts.proxy !== null && resolution.kind !== 'refused') {
    // What has no answer here may well be known to the proxy: on closed networks only it asks the outside.
    const isKnown = resolution.kind === 'addresses'
    if (!isKnown && isPrivateName(target.host))
      return refused('a name of private networks is not for the proxy')
    return sendPost(parts, claim, target, { proxy: parts.proxy }, atMs, signal)
  }
  switch (resolution.kind) {
    case 'refused':
    case 'unknown':
      return refusedName(target.host, resolution)
    case 'unanswered':
      return failed({ code: 'name_unanswered', message: 'no name server answers for the host', ours: false })
    case 'resolver_down':
      return failed({ code: 'resolver_down', message: 'no name server answers at all', ours: true })
    case 'addresses':
      return firstReached(resolution.addresses, (address) =>
        target.kind === 'http'
          ? sendPost(parts, claim, target, { address }, atMs, signal)
          : sendSyslog(claim, target, address, atMs, signal),
      )
  }
}

const neverConnected = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL'])

/** The next address is tried only when the one before never took the connection, so nothing is sent twice. */
async function firstReached(
  addresses: string[],
  to: (address: string) => Promise<Answered>,
): Promise<Answered> {
  for (const [index, address] of addresses.entries()) {
    try {
      return await to(address)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      if (index === addresses.length - 1 || !neverConnected.has(code)) throw error
    }
  }
  throw new Error('invariant: a resolved host has an address')
}

async function sendPost(
  parts: AttemptParts,
  claim: Claim,
  target: HttpTarget,
  route: Route,
  atMs: number,
  signal: AbortSignal,
): Promise<Answered> {
  const answer = await post({
    url: target.url,
    host: target.host,
    route,
    headers: requestHeaders(parts, claim, atMs),
    body: claim.delivery.body,
    ca: parts.ca,
    signal,
  })
  const isDelivered = answer.status >= 200 && answer.status < 300
  return {
    status: answer.status,
    excerpt: excerptText(answer.excerpt, answer.encoding),
    retryAfterMs: isDelivered ? null : readRetryAfter(answer.retryAfter, parts.clock.now()),
    fault: isDelivered ? null : statusFault(answer.status),
  }
}

/** Everything we send beside what HTTP itself needs. */
export function requestHeaders(
  parts: Pick<AttemptParts, 'box' | 'version'>,
  claim: Pick<Claim, 'delivery' | 'sealedSecrets'>,
  atMs: number,
): Record<string, string> {
  const { id, body } = claim.delivery
  const secrets = claim.sealedSecrets.map((sealed) => parts.box.open(sealPurpose(claim.delivery), sealed))
  return {
    'content-type': 'application/json',
    'user-agent': `Sightglass/${parts.version}`,
    ...signedHeaders(secrets, { id, body }, atMs),
  }
}

async function sendSyslog(
  claim: Claim,
  target: SyslogTarget,
  address: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<Answered> {
  const lines = messageLines(claim.delivery.body)
  const peer = { address, port: target.port }
  if (target.transport === 'udp') {
    await sendDatagrams(
      peer,
      lines.map((line) => datagram(line, nowMs, thisSource)),
    )
  } else {
    const messages = lines.map((line) => syslogMessage(line, nowMs, thisSource))
    await sendStream(peer, octetCounted(messages), signal)
  }
  return delivered
}

export const retryAfterMsMax = 3_600_000

/**
 * Reads a `Retry-After` header, seconds or an HTTP date, as at most one hour; null when it says nothing usable.
 * Fractions are no HTTP, but receivers send them: rounded up, they are what was meant. A negative number is ignored.
 */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d+(?:\.\d+)?$/.test(text)) return Math.min(Math.ceil(Number(text) * 1_000), retryAfterMsMax)
  // Date.parse takes far more than HTTP dates, so the shape is asked first.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return null
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? null : Math.min(Math.max(0, atMs - nowMs), retryAfterMsMax)
}
