/** Who says so: what the appliance records beside an event's text, which is stored and returned as it was sent. */

/** How an event came in. */
export const doors = ['events', 'access-log', 'syslog', 'otlp', 'import', 'demo'] as const
export type Door = (typeof doors)[number]

/** Verdicts of the judge (contract §12). A sender may report other words. */
export const knownVerdicts = ['verified', 'consistent', 'contradicted', 'unverifiable', 'unknown'] as const

export function isKnownVerdict(verdict: string): boolean {
  return (knownVerdicts as readonly string[]).includes(verdict)
}

/**
 * `appliance`: by its own evidence. `sender`: only the event's own `agent.verdict` says so. `unknown`: stored before
 * judges were recorded; such an event has a verdict and no judge in its columns.
 */
export type Judge = 'appliance' | 'sender' | 'unknown'

/** The value of `observedBy` when this appliance read the address itself, from a file or a socket of its machine. */
export const applianceObserver = 'appliance'

/** What the store has in place of a key for events of files and sample events. Their record has no key. */
export const keylessIds: readonly string[] = ['import', 'demo']

/** The record of one event. */
export interface Provenance {
  door: string | null // null in events that were stored before it was recorded
  key: string | null // the id of the ingest key; null for files, the command line and sample events
  verdict: string | null
  judgedBy: Judge | null // null without a verdict
  observedBy: string | null // null when no address or signature was judged
  /** What the appliance's verdict rests on, as JSON text (`VerdictEvidence`). */
  evidence: string | null
  /** The network of a contradicted request, /24 or /48, while it is stored. */
  network: string | null
}

/** Why the appliance gave its verdict. */
export interface VerdictEvidence {
  method: string // signature, address, dns
  list?: string // the address of the operator's list
  listDate?: string
  listDigest?: string // SHA-256 of the list's networks as they were judged, hex
  networks?: number // how many the operator's lists have, where the address is in none of them
  keyId?: string // of a signature
  reason?: string // of a verdict that proves nothing
}

/** A verdict, who gave it and who reported what was judged: the parts of a counted judgement. */
export interface Judgement {
  verdict: string | null // null: a word of the sender that is no known verdict
  judgedBy: Exclude<Judge, 'unknown'>
  by: string | null // the observer of the appliance's verdict, or the key of the sender; null: beyond the limit
}

/** The filter of verdicts that the appliance vouches for: its own, and those stored before judges were recorded. */
export const vouchedJudges: readonly string[] = ['appliance', 'unknown']
