/** Judges what a sender claims: by its address at once, and by its signature when somebody needs the verdict. */
import { userAgentOf, type RequestHeaders } from '../client/visitor-session.ts'
import type { DetectedAgent } from '../agents/detect-agent.ts'
import type { OnError } from '../client/problem.ts'
import { judge, trustOf, type Judgment } from '../judge/judge.ts'
import type { NonceMemory } from '../judge/signature-keys.ts'
import { verifySignature, type SignedRequest } from '../judge/signature.ts'
import type { EvidenceSource } from './evidence.ts'
import { headerOf, type OpenVisit, type SeenRequest, setAgent, withoutOrigin } from './visit.ts'

/** An agent by its user agent, or by the signature of its operator. */
type NamedAgent = DetectedAgent | { vendor: string; userAgent: string }

/**
 * Without a judgment, nothing is known but the claim. Changes `request.agent` in place. Here and where events are made,
 * fields are assigned one by one, because V8 takes several times as long for a second spread in a literal.
 */
export function giveVerdict(visit: OpenVisit, namedAgent: NamedAgent, judged: Judgment | null): void {
  const verdict = judged?.verdict ?? 'unverifiable'
  const evidence = judged?.evidence
  let { agent } = visit
  if (agent === null) {
    const { name = null, purpose = null } = namedAgent as Partial<DetectedAgent>
    agent = { operator: namedAgent.vendor, product: name, purpose, verdict }
    visit.agent = agent
    for (const request of visit.requests) setAgent(request, agent)
  }
  agent.verdict = verdict
  if (evidence !== undefined) agent.evidence = evidence
  else if (agent.evidence !== undefined) delete agent.evidence
  visit.eventAgent = namedAgent
  if (judged === null) return
  const eventAgent: { [field: string]: unknown } = { ...namedAgent, trust: trustOf(verdict), verdict }
  if (evidence !== undefined) eventAgent['evidence'] = evidence
  visit.eventAgent = eventAgent
}

interface Settling {
  visit: OpenVisit
  /** What the user agent says. */
  named: DetectedAgent | { userAgent: string }
  signed: SignedRequest | null
  sender: string | null
  startMs: number
  evidence: EvidenceSource
  nonces: NonceMemory | undefined
  report: OnError
}

/** Returns a function that gives a visit its final verdict, once: verifying costs more than all else. */
export function settler(settling: Settling): () => Promise<void> {
  let settled: Promise<void> | null = null
  return () =>
    (settled ??= settle(settling).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : 'no error'
      settling.report({
        code: 'evidence_failed',
        message: `A request could not be judged: ${reason}.`,
        cause,
      })
    }))
}

async function settle({
  visit,
  named: namedAgent,
  signed,
  sender,
  startMs,
  evidence,
  nonces,
}: Settling): Promise<void> {
  const loadedEvidence = evidence.current() ?? ((await evidence.load()) ? evidence.current() : null)
  if (loadedEvidence === null) return
  const verifying = { nonces, nowMs: () => startMs }
  const signature =
    signed === null
      ? undefined
      : await verifySignature(signed, { keyring: await loadedEvidence.keyring(), ...verifying })
  const claim = 'vendor' in namedAgent ? namedAgent : null
  if (claim !== null) {
    giveVerdict(
      visit,
      claim,
      judge(claim, { address: sender, signature }, loadedEvidence.evidence, { atMs: startMs }),
    )
  } else if (signature?.state === 'valid') {
    const judged = judge(null, { signature }, loadedEvidence.evidence, { atMs: startMs })
    giveVerdict(visit, { vendor: signature.operator, ...namedAgent }, judged)
  }
}

/** Whether the request claims, by its signature, to come from an agent. */
export function isSigned(headers: RequestHeaders): boolean {
  return (
    headerOf(headers, 'signature-input').includes('"web-bot-auth"') && headerOf(headers, 'signature') !== ''
  )
}

/** The agent field of a request that only its signature claims: the host where its operator says to publish keys. */
export function signedClaim(headers: RequestHeaders): { [field: string]: unknown } {
  const [, host] = /"https:\/\/([a-z0-9.-]{1,100})\/?"/i.exec(headerOf(headers, 'signature-agent')) ?? []
  const claim: { [field: string]: unknown } = { userAgent: userAgentOf(headers) }
  if (host !== undefined) claim['vendor'] = host.toLowerCase()
  return claim
}

/**
 * The request as its sender signed it, or null without a signature. Its host is one of the site's own, whatever the
 * Host header says: that header may come from anybody, and a proxy may have replaced it. Without origins it is that of
 * the header, which only the appliance can use: it compares the host with those in the settings of the site.
 */
export function signedRequest(
  { method, url, headers }: SeenRequest,
  origins: readonly URL[],
): SignedRequest | null {
  if (headerOf(headers, 'signature-input') === '') return null
  const host = headerOf(headers, 'host').toLowerCase()
  const { origin } = origins.find((candidate) => candidate.host === host) ??
    origins[0] ?? { origin: `https://${host}` }
  return { method, url: origin + withoutOrigin(url), headers }
}

export function originOf(text: unknown): URL {
  try {
    const url = new URL(String(text))
    if (/^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url
  } catch {
    // Reported below.
  }
  throw new TypeError(
    `origins must be addresses such as https://shop.example, not ${String(text).slice(0, 100)}`,
  )
}
