/** Records that are joined from their parts are those that the checks of ingest make of the whole event. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { detectAgent } from '../../sdk/agents/detect-agent.ts'
import { gptBot } from '../../tests/support/access-logs.ts'
import { isoTime } from '../clock.ts'
import type { JudgedFields } from '../evidence/judged-record.ts'
import { acceptMade } from '../ingest/check-event.ts'
import { accessRecords, judgedAgent, type RequestParts } from './event-records.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('', 'a"b\\c', '\0', '\ud800', '\\u0000', 'ä€😀', '\u001f\n'),
)
const longText = fc.constantFrom('x'.repeat(9_000), '😀'.repeat(4_000), '\u0001'.repeat(60_000))
const userAgents = [gptBot, `GPTBot ${'"\u0001'.repeat(900)}`, 'ClaudeBot/1.0 ä😀 \\u0000 "']
const client = fc.constantFrom(...userAgents.map((userAgent) => detectAgent(userAgent.slice(0, 2_000))!))
const evidence = fc.record(
  {
    method: fc.constantFrom('address' as const, 'dns' as const),
    list: fc.constantFrom('gptbot', 'other "list"'),
    listDate: fc.constantFrom('2026-01-01', '2026-02-02'),
    networks: fc.nat(3),
    reason: fc.constantFrom('user-triggered' as const, 'old-list' as const),
  },
  { requiredKeys: ['method'] },
)
const judgment = fc.record(
  {
    verdict: fc.constantFrom('verified' as const, 'consistent' as const, 'contradicted' as const),
    evidence,
  },
  { requiredKeys: ['verdict'] },
)
const mark = fc.record({
  robots: fc.constantFrom('allowed' as const, 'disallowed' as const),
  robotsRule: fc.record(
    { version: fc.nat(9), from: fc.constant(isoTime(0)), line: fc.nat(99) },
    { requiredKeys: ['version', 'from'] },
  ),
})
const metadata = fc.record(
  {
    page: fc.string({ minLength: 1, maxLength: 9 }),
    method: fc.oneof({ weight: 15, arbitrary: text }, { weight: 1, arbitrary: longText }),
    status: fc.nat(599),
    bytes: fc.nat(),
    referrerHost: text,
    query: fc.dictionary(text, text, { maxKeys: 3 }),
    source: fc.constant('access-log'),
  },
  { requiredKeys: ['source'] },
)
const judged: JudgedFields = {
  verdict: 'contradicted',
  judgedBy: 'appliance',
  observedBy: 'key_1',
  evidence: '{"method":"address"}',
  network: '192.0.2.0/24',
}
const parts: fc.Arbitrary<RequestParts> = fc.record({
  id: fc.constant('log_abc'),
  sessionId: fc.constant('log_def'),
  timeMs: fc.double({ min: 0, max: 4e12, noNaN: true }),
  outcome: fc.constantFrom('success', 'blocked', 'error'),
  durationMs: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constantFrom(0, 1.5, 1e15)),
  client,
  judgment,
  judged: fc.constant(judged),
  mark: fc.option(mark),
  metadata,
})
const siteIds = ['shop', 'ä "x" \\ 😀', '', 'x'.repeat(201), 'a\0b', '\ud800']

test('a request has the same record, or the same reason for none', () => {
  const siteRecords = siteIds.map((siteId) => ({ siteId, records: accessRecords(siteId) }))
  const joined = { records: 0, reasons: 0 }
  fc.assert(
    fc.property(fc.constantFrom(...siteRecords), parts, ({ siteId, records }, request) => {
      const { id, sessionId, timeMs, outcome, durationMs } = request
      const event = {
        id,
        siteId,
        sessionId,
        occurredAt: isoTime(timeMs),
        type: 'agent.requested',
        outcome,
        ...(durationMs === null ? {} : { durationMs }),
        agent: { ...judgedAgent(request.client, request.judgment), ...request.mark },
        metadata: request.metadata,
      }
      const checked = acceptMade([event])
      const record = records.request(request)
      joined[typeof record === 'string' ? 'reasons' : 'records']++
      const [expected] = checked.records
      expect(record).toEqual(expected ? { ...expected, ...judged } : checked.rejected[0]!.message)
    }),
    { numRuns: 2_000 },
  )
  expect(Math.min(joined.records, joined.reasons)).toBeGreaterThan(200)
})
