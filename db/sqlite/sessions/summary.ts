/** Sums up a session from what the columns of its events say. */
import type { Session } from '../../session-store.ts'
import { isHash, member } from '../events/members.ts'
import { readBlock } from '../events/open-block.ts'
import { termTexts } from '../events/term-texts.ts'
import type { LogView } from './log-view.ts'
import type { SessionRow, SessionRows } from './rows.ts'

type Name = 'siteId' | 'type' | 'outcome' | 'class' | 'vendor' | 'trust'

/** Known trusts, rising; any other counts as less. */
const ladder = ['detected', 'declared', 'verified', 'linked']

/** For one moment of the log: it remembers the texts that it looked up. */
export function summarizer({ db, org }: LogView): (id: string, found: SessionRows) => Session {
  const texts = new Map<Name, Map<number, string>>()

  function textOf(row: SessionRow, name: Name): string | null {
    const code = row[name]
    if (code === 0) return null
    if (isHash(code)) return readBlock(db, row.zone)?.hashedText(member[name], row.row) ?? null
    let known = texts.get(name)
    if (known === undefined) texts.set(name, (known = termTexts(db, org, member[name])))
    return known.get(code) ?? null
  }

  function tally(rows: SessionRow[], name: Name, keyOf: (text: string) => string): { [key: string]: number } {
    const byCode = new Map<number, { row: SessionRow; count: number }>()
    for (const row of rows) {
      const known = byCode.get(row[name])
      if (known === undefined) byCode.set(row[name], { row, count: 1 })
      else known.count++
    }
    const counts = new Map<string, number>()
    for (const { row, count } of byCode.values()) {
      const key = keyOf(textOf(row, name) ?? '')
      counts.set(key, (counts.get(key) ?? 0) + count)
    }
    return Object.fromEntries(counts)
  }

  /** The newest comes first, so that among equals the one already there is the latest. */
  function best(rows: SessionRow[]): SessionRow | null {
    let found: SessionRow | null = null
    let height = -2
    for (const row of rows) {
      if (row.class === 0 && row.vendor === 0 && row.trust === 0) continue
      const reached = ladder.indexOf(textOf(row, 'trust') ?? '')
      if (reached <= height) continue
      found = row
      height = reached
    }
    return found
  }

  return (id, { rows, isCut }) => {
    const agent = best(rows)
    const sites = [...new Set(rows.toReversed().map(({ siteId }) => siteId))]
    const bySite = new Map(rows.map((row) => [row.siteId, row]))
    return {
      id,
      siteIds: sites.map((site) => textOf(bySite.get(site)!, 'siteId') ?? ''),
      firstSeenAtMs: rows.at(-1)!.at,
      lastSeenAtMs: rows[0]!.at,
      events: rows.length,
      isCut,
      class: agent && (textOf(agent, 'class') || null),
      vendor: agent && (textOf(agent, 'vendor') || null),
      trust: agent && (textOf(agent, 'trust') || null),
      byPillar: tally(rows, 'type', (type) => type.split('.', 1)[0] ?? type),
      byOutcome: tally(rows, 'outcome', (outcome) => outcome),
    }
  }
}
