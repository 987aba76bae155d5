/** The record of what the appliance judged: its verdict, what it rests on, and who saw the address or signature. */
import { applianceObserver, type VerdictEvidence } from '../../db/contract/provenance.ts'
import type { EventRecord } from '../../db/contract/store.ts'
import type { Evidence, JudgedEvidence, Judgment } from '../../sdk/judge/judge.ts'

/** The fields of a record that say who judged. */
export type JudgedFields = Pick<EventRecord, 'verdict' | 'judgedBy' | 'observedBy' | 'evidence' | 'network'>

/**
 * The fields for a judgment of this appliance. `observedBy` is `appliance` when it read the address itself, else the id
 * of the key whose sender reported it; `address` is the judged one, of which an impostor's network is stored.
 */
export function judgedFields(
  { verdict, evidence: judged }: Judgment,
  observedBy: string,
  evidence: Evidence,
  network: () => string | null,
): JudgedFields {
  return {
    verdict,
    judgedBy: 'appliance',
    observedBy,
    evidence: judged === undefined ? null : evidenceText(judged, evidence),
    network: verdict === 'contradicted' ? network() : null,
  }
}

/** One text for each kind of evidence, because an organization stores a few hundred of them as terms. */
const texts = new WeakMap<Evidence, Map<string, string>>()
const textsMax = 1_000

function evidenceText(judged: JudgedEvidence, evidence: Evidence): string {
  let textsByName = texts.get(evidence)
  if (textsByName === undefined) texts.set(evidence, (textsByName = new Map()))
  const { method, list = '', listDate = '', networks, keyId = '', reason = '' } = judged
  const name = `${method} ${list} ${listDate} ${networks} ${keyId} ${reason}`
  const text = textsByName.get(name)
  if (text !== undefined) return text
  if (textsByName.size >= textsMax) textsByName.clear()
  const listDigest = evidence.digests.get(list)
  const evidenceJson = JSON.stringify({
    method,
    ...(list !== '' && { list, listDate }),
    ...(listDigest !== undefined && { listDigest }),
    ...(networks !== undefined && { networks }),
    ...(keyId !== '' && { keyId }),
    ...(reason !== '' && { reason }),
  } satisfies VerdictEvidence)
  textsByName.set(name, evidenceJson)
  return evidenceJson
}

/** Sets the fields of an event that this appliance made as text, such as sample data, by the verdict in the text. */
export function vouchFor(record: EventRecord): void {
  if (record.verdict === null) return
  const { agent } = JSON.parse(record.json) as { agent?: { evidence?: JudgedEvidence } }
  record.judgedBy = 'appliance'
  record.observedBy = applianceObserver
  record.evidence = agent?.evidence === undefined ? null : JSON.stringify(agent.evidence)
}
