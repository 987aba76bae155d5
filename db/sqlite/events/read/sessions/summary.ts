/** A session as its tally says it, or as its newest events do. */
import type { Session } from '../../../../contract/sessions.ts'
import type { NewestRows } from './rows.ts'
import { addToTally, emptyTally, type Tally } from './tally.ts'
import type { SessionTexts } from './texts.ts'

export function summaryOf(id: string, tally: Tally, texts: SessionTexts, isCut = false): Session {
  const { agent } = tally
  const sites = [...tally.sites].sort(([, a], [, b]) => a.occurredAtMs - b.occurredAtMs || a.seq - b.seq)
  const byPillar = new Map<string, number>()
  for (const [code, count] of tally.types) {
    const type = texts.term('type', code)
    const pillar = type.split('.', 1)[0] ?? type
    byPillar.set(pillar, (byPillar.get(pillar) ?? 0) + count)
  }
  const byOutcome = Array.from(tally.outcomes, ([code, count]) => [texts.term('outcome', code), count])
  return {
    id,
    siteIds: sites.map(([code]) => texts.term('siteId', code)),
    firstSeenAtMs: tally.firstAt,
    lastSeenAtMs: tally.lastAt,
    events: tally.events,
    isCut,
    class: agent && texts.of('class', agent),
    vendor: agent && texts.of('vendor', agent),
    trust: agent && texts.of('trust', agent),
    byPillar: Object.fromEntries(byPillar),
    byOutcome: Object.fromEntries(byOutcome) as Session['byOutcome'],
  }
}

export function summaryOfRows(id: string, { rows, isCut }: NewestRows, texts: SessionTexts): Session {
  const tally = emptyTally()
  for (const row of rows) addToTally(tally, row, texts.height)
  return summaryOf(id, tally, texts, isCut)
}
