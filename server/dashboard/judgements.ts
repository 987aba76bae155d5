/** Who gave the verdicts of a period, and who saw what was judged: the appliance, or senders by their keys. */
import { isoTime } from '../clock.ts'
import { judgedSince } from '../evidence/judged-since.ts'
import type { Judgement } from '../../db/contract/provenance.ts'
import type { CountScope } from './period.ts'
import type { BreakdownView, JudgementCount, Unjudged } from './shapes.ts'

/** As many as a breakdown has: verdicts times keys. */
export const judgementsMax = 1_000

interface Judges {
  labels: ReadonlyMap<string, string> // of ingest keys, by id
  sinceMs: number | null
}

export async function judgesOf({ store, orgId }: CountScope): Promise<Judges> {
  const [keys, sinceMs] = await Promise.all([store.keys.list({ orgId, kind: 'ingest' }), judgedSince(store)])
  return { labels: new Map(keys.map(({ id, label }) => [id, label])), sinceMs }
}

/** `verdicts` are those that the appliance vouches for: what exceeds its own was stored before judges were recorded. */
export function judgementsOf(
  { verdicts, judgements }: { verdicts: BreakdownView; judgements: BreakdownView },
  { labels, sinceMs }: Judges,
): { judgements: JudgementCount[]; unjudged: Unjudged | null } {
  const counts = judgements.rows.flatMap(({ value, count, before }): JudgementCount[] => {
    if (value === null) return []
    const judgement = JSON.parse(value) as Judgement
    const label = judgement.by === null ? null : (labels.get(judgement.by) ?? null)
    return [{ ...judgement, label, count, before }]
  })
  const vouched = verdicts.rows.reduce((sum, { count }) => sum + count, verdicts.more?.count ?? 0)
  const own = counts.reduce((sum, { judgedBy, count }) => (judgedBy === 'appliance' ? sum + count : sum), 0)
  // Between the two reads more events may arrive.
  const count = Math.max(0, vouched - own)
  const hasUnjudged = count > 0 && (sinceMs !== null || own === 0)
  const before = sinceMs === null ? null : isoTime(sinceMs)
  return { judgements: counts, unjudged: hasUnjudged ? { count, before } : null }
}
