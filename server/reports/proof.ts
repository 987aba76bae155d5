/**
 * The proof at the end of a report: the appliance's Ed25519 signature over the SHA-256 of every other byte of the file.
 * Whoever has the file and the public key can check it without Sightglass.
 */
import { createHash } from 'node:crypto'
import { isSignedBy, type SigningKey } from '../audit/signing.ts'

export interface ReportFacts {
  orgId: string
  org: string // its name
  since: string
  until: string // exclusive
  at: string // when the report was made
  events: number
}

interface Proof extends ReportFacts {
  format: typeof format
  digest: string // SHA-256 of the file without the JSON of the proof, in lower-case hex
  key: string // public key, base64url
  signature: string // base64url, over `signedText`
}

export type ReportVerdict = { ok: boolean; fault: string | null } & Partial<ReportFacts & { key: string }>

const format = 'sightglass-report-1'
const start = '<script type="application/json" id="sightglass-proof">'
const end = '</script>\n</body>\n</html>\n'

/** What is signed; the verifier in the browser builds the same text. */
const signedText = ({
  orgId,
  org,
  since,
  until,
  at: createdAt,
  events,
  digest,
}: Omit<Proof, 'signature'>): string =>
  JSON.stringify([format, orgId, org, since, until, createdAt, events, digest])

/** `body` is the document up to its proof, and contains no other `<script`. */
export function signReport(body: string, facts: ReportFacts, key: SigningKey): string {
  const { orgId, org, since, until, at: createdAt, events } = facts
  const digest = createHash('sha256')
    .update(body + start + end)
    .digest('hex')
  const unsigned = {
    format,
    orgId,
    org,
    since,
    until,
    at: createdAt,
    events,
    digest,
    key: key.publicKey,
  } as const
  const proof: Proof = { ...unsigned, signature: key.sign(signedText(unsigned)) }
  return body + start + proofJson(proof) + end
}

/** JSON that is safe inside HTML. */
const proofJson = (proof: Proof): string => JSON.stringify(proof).replaceAll('<', '\\u003c')

const fields = ['format', 'orgId', 'org', 'since', 'until', 'at', 'events', 'digest', 'key', 'signature']

/** Never throws. `trusted`: the public key that must have signed. */
export function verifyReport(bytes: Uint8Array, trusted: string | null): ReportVerdict {
  const broken = (fault: string): ReportVerdict => ({ ok: false, fault })
  const text = decode(bytes)
  if (text === null) return broken('It is not UTF-8 text')
  const [body, proofPart, ...extraParts] = text.split(start)
  if (proofPart === undefined || extraParts.length > 0 || !proofPart.endsWith(end))
    return broken('It has no proof')
  const written = proofPart.slice(0, -end.length)
  const proof = parseProof(written)
  if (proof === null) return broken('Its proof is malformed')
  const { format: _, digest, signature, ...facts } = proof
  const actualDigest = createHash('sha256')
    .update(body + start + end)
    .digest('hex')
  if (actualDigest !== digest) return { ...facts, ...broken('It was changed after it was signed') }
  if (!isSignedBy(proof.key, signedText(proof), signature))
    return { ...facts, ...broken('Its signature does not match') }
  if (trusted !== null && trusted !== proof.key) return { ...facts, ...broken('Another key signed it') }
  return { ...facts, ok: true, fault: null }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Null unless the text is exactly what `signReport` writes, because nothing else would be protected. */
function parseProof(text: string): Proof | null {
  try {
    const proof = JSON.parse(text) as Proof
    const isKnown = Object.keys(proof).join() === fields.join() && proof.format === format
    const isTyped = Object.entries(proof).every(([name, value]) =>
      name === 'events' ? Number.isSafeInteger(value) : typeof value === 'string',
    )
    return isKnown && isTyped && proofJson(proof) === text ? proof : null
  } catch {
    return null
  }
}
