/** Lists sessions by their newest matching event, each told where it shows first. */
import type { Session, SessionPage, SessionPageQuery } from '../../../../contract/sessions.ts'
import { filterClauses } from '../../index/filter-codes.ts'
import type { OpenBlock } from '../../blocks/open-block.ts'
import { nextCandidates } from './candidates.ts'
import type { LogView } from './log-view.ts'
import type { Sliced } from '../../../threads/slices.ts'
import { tellSessions } from './tell.ts'
import { sessionTexts } from './texts.ts'

/** Comes back short when the budget is used up; the walk goes on at `next`. */
export function* listSessions(
  log: LogView,
  query: SessionPageQuery & { ceilingSeq: number },
): Sliced<SessionPage> {
  const { filter, limit, ceilingSeq, eventsMax, bytesMax = Infinity } = query
  // Half of the time to find which sessions come next, half to sum them up.
  const budgetMs = query.budgetMs / 2
  const startMs = performance.now()
  const clauses = filterClauses(log.db, log.org, log.hashSeed, filter)
  const walk = { filter, clauses, ceilingSeq, told: new Set<string>(), endMs: startMs + budgetMs }
  const texts = sessionTexts(log)
  const sessions: Session[] = []
  const matches = (block: OpenBlock, row: number) =>
    block.at(row) >= (filter.sinceMs ?? -Infinity) &&
    block.at(row) < (filter.untilMs ?? Infinity) &&
    block.matches(row, clauses)
  let before = query.before
  let bytes = 0
  for (;;) {
    const { candidates, next } = yield* nextCandidates(log, walk, before, limit - sessions.length)
    const told = yield* tellSessions(log, texts, { candidates, ceilingSeq, eventsMax, matches, budgetMs })
    for (const candidate of candidates) {
      const own = told.get(candidate.id)
      if (own === undefined) return { sessions, next: candidate.before, ceilingSeq }
      // A walk that goes on may meet a session of an earlier page again.
      if (own.newest?.seq !== candidate.newest.seq) continue
      bytes += Buffer.byteLength(JSON.stringify(own.session))
      if (sessions.length > 0 && bytes > bytesMax) return { sessions, next: candidate.before, ceilingSeq }
      sessions.push(own.session)
    }
    before = next
    if (next === null || sessions.length === limit || performance.now() > startMs + query.budgetMs)
      return { sessions, next, ceilingSeq }
  }
}
