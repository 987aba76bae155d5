/** The evidence of the middleware: the pack that the appliance serves, loaded when it is needed, or a file of yours. */
import { reporter, type OnError } from '../client/problem.ts'
import { packLimits, readPack, type EvidencePack } from '../judge/evidence-pack.ts'
import { openEvidence, type Evidence } from '../judge/judge.ts'
import { isReleasePack } from '../judge/pack-signature.ts'
import { createKeyring, type Keyring } from '../judge/signature-keys.ts'
import { nowMs } from '../platform/clock.ts'
import { checkedUrl, type Fetch } from '../wire/connection.ts'
import { userAgent } from '../wire/request.ts'
import { backoffMs, IntelError } from '../wire/retry.ts'

/** Lists and keys of operators, prepared for judging requests. */
export interface LoadedEvidence {
  evidence: Evidence
  /** Imported when the first signed request needs them. */
  keyring(): Promise<Keyring>
}

/** Where the middleware gets its evidence: `loadEvidence` or `readEvidence`. */
export interface EvidenceSource {
  /** The newest evidence, or null when none was loaded. Starts a load when one is due. Never throws. */
  current(): LoadedEvidence | null
  /** Loads the evidence if that is due. False without evidence. Never rejects. */
  load(): Promise<boolean>
}

export interface EvidenceOptions {
  /** Address of the appliance, such as https://sightglass.example. Nothing else is contacted. */
  url: string
  /** How long evidence is used before the appliance is asked for a newer pack. Default: 6 hours. */
  refreshMs?: number
  /** Default: 10,000. */
  requestTimeoutMs?: number
  /** Accepts a pack without the signature of a Sightglass release, which an operator stored with `--trust`. */
  trust?: boolean
  /** Receives failures to load. By default they are logged with `console.warn`. */
  onError?: OnError
  fetch?: Fetch
}

const refreshMsDefault = 6 * 3_600_000
const retryMsMin = 5_000
const retryMsMax = 600_000

/**
 * Evidence of the appliance. It is loaded when the first request arrives, or by `await evidence.load()`; no timer runs.
 * Until then verdicts are `unverifiable`. After a failure the evidence that was loaded stays in use. Throws on an
 * invalid address.
 */
export function loadEvidence(options: EvidenceOptions): EvidenceSource {
  const url = `${checkedUrl(options.url)}/sdk/evidence.json`
  const { refreshMs = refreshMsDefault } = options
  const report = reporter(options.onError)
  let loaded: LoadedEvidence | null = null
  let etag: string | null = null
  let dueMs = -Infinity
  let failures = 0
  let pending: Promise<boolean> | null = null
  const attempt = async (): Promise<boolean> => {
    try {
      const update = await download(url, etag, options)
      if (update !== null) ({ loaded, etag } = update)
      failures = 0
      dueMs = nowMs() + refreshMs
    } catch (cause) {
      dueMs = nowMs() + backoffMs(failures++, retryMsMin, retryMsMax, Math.random)
      const reason = cause instanceof Error ? cause.message : 'no error'
      report({ code: 'evidence_failed', message: `The evidence pack was not loaded: ${reason}.`, cause })
    }
    return loaded !== null
  }
  const load = (): Promise<boolean> => {
    if (pending === null && nowMs() < dueMs) return Promise.resolve(loaded !== null)
    pending ??= attempt().finally(() => (pending = null))
    return pending
  }
  return {
    current() {
      if (pending === null && nowMs() >= dueMs) void load()
      return loaded
    },
    load,
  }
}

/** Evidence from a pack file: the parsed JSON. Throws a `PackError` for an invalid pack. */
export function readEvidence(document: unknown): EvidenceSource {
  const loaded = prepared(readPack(document))
  return { current: () => loaded, load: () => Promise.resolve(true) }
}

function prepared(pack: EvidencePack): LoadedEvidence {
  let keyring: Promise<Keyring> | null = null
  return { evidence: openEvidence(pack), keyring: () => (keyring ??= createKeyring(pack.directories)) }
}

/** Null when the pack has not changed. Does not follow redirects, because they lead elsewhere. */
async function download(
  url: string,
  etag: string | null,
  { requestTimeoutMs = 10_000, trust = false, fetch: send = fetch }: EvidenceOptions,
): Promise<{ loaded: LoadedEvidence; etag: string | null } | null> {
  const response = await send(url, {
    headers: { 'user-agent': userAgent, ...(etag === null ? {} : { 'if-none-match': etag }) },
    redirect: 'manual',
    signal: AbortSignal.timeout(requestTimeoutMs),
  })
  const { status } = response
  if (status === 304 && etag !== null) return null
  if (status !== 200) {
    await response.body?.cancel()
    throw new IntelError(`${url} answered with status ${status}`, { status })
  }
  const document: unknown = JSON.parse(await limitedText(response))
  if (!trust && !(await isReleasePack(document)))
    throw new IntelError(
      'it is not signed by a Sightglass release; use trust: true if you know who made it',
      {
        status,
      },
    )
  return { loaded: prepared(readPack(document)), etag: response.headers.get('etag') }
}

/** The body, which may inflate to any size. */
async function limitedText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  const reader = response.body?.getReader()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {}
    if (done || value === undefined) return text + decoder.decode()
    bytes += value.length
    if (bytes > packLimits.bytesMax) {
      await reader?.cancel()
      throw new RangeError(`it is larger than ${packLimits.bytesMax} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
}
