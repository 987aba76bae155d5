/** The findings of each kind of alert rule: shares of the last hour, silence, new vendors, leaked keys. */
import { expect, test } from 'bun:test'
import type { ApiKey } from '../../../db/contract/store.ts'
import type { Rule, RuleKind } from '../../../db/contract/alerts.ts'
import { evaluateRule, type OrgState } from './evaluate.ts'
import { makeRates, windowMs } from './counters.ts'

const now = 1_700_000_000_000
const minuteMs = 60_000
const rule = (kind: RuleKind, fields: Partial<Rule> = {}): Rule => {
  const defaults = {
    id: 'rul_1',
    orgId: 'org_1',
    endpointId: 'ep_1',
    threshold: null,
    minutes: null,
    eventsMin: null,
    name: '',
    definition: null,
    fromFile: false,
    silencedUntilMs: null,
  }
  return { ...defaults, kind, createdAtMs: now - 60 * minuteMs, ...fields }
}
const view = (fields: Partial<OrgState> = {}): OrgState => {
  const share = { total: 0, bad: 0 }
  return {
    newVendors: [],
    blocked: share,
    toolErrors: new Map(),
    lastEventAtMs: null,
    exposedKeys: [],
    ...fields,
  }
}

test('a share must exceed its threshold and have enough events', () => {
  const half = rule('blocked_share', { threshold: 0.5, eventsMin: 10 })
  const findingsFor = (total: number, bad: number) =>
    evaluateRule(half, view({ blocked: { total, bad } }), now)
  expect(findingsFor(9, 9)).toEqual([])
  expect(findingsFor(10, 5)).toEqual([])
  expect(findingsFor(10, 6)).toEqual([
    { subject: '', data: { share: 0.6, threshold: 0.5, events: 10, windowMinutes: 60 } },
  ])
  expect(findingsFor(0, 0)).toEqual([])
})

test('error rates are evaluated per tool', () => {
  const toolErrors = new Map([
    ['pay', { total: 10, bad: 9 }],
    ['search', { total: 10, bad: 1 }],
  ])
  const findings = evaluateRule(
    rule('tool_error_rate', { threshold: 0.2, eventsMin: 5 }),
    view({ toolErrors }),
    now,
  )
  expect(findings.map(({ subject }) => subject)).toEqual(['pay'])
})

test('silence counts from the last event or from the creation of the rule, never before the first event', () => {
  const quiet = (lastEventAtMs: number | null, createdAtMs = 0) =>
    evaluateRule(rule('silence', { minutes: 5, createdAtMs }), view({ lastEventAtMs }), now).length
  expect([quiet(null), quiet(now - 5 * minuteMs + 1), quiet(now - 5 * minuteMs)]).toEqual([0, 0, 1])
  expect(quiet(now - 60 * minuteMs, now - minuteMs)).toBe(0)
})

test('finds vendors first seen after the rule was created, and leaked keys', () => {
  const newVendors = [
    { vendor: 'Old', firstAtMs: now - 61 * minuteMs },
    { vendor: 'New', firstAtMs: now },
  ]
  expect(evaluateRule(rule('new_vendor'), view({ newVendors }), now).map(({ subject }) => subject)).toEqual([
    'New',
  ])
  const key = { id: 'key_1', label: 'site', prefix: 'agtx_ik_abcd', exposedAtMs: now } as ApiKey
  expect(evaluateRule(rule('key_leaked'), view({ exposedKeys: [key] }), now)).toMatchObject([
    { subject: 'key_1', data: { label: 'site' } },
  ])
})

test('rates drop minutes older than an hour', () => {
  const rates = makeRates()
  rates.addExecutions(now, 'pay', { total: 1, bad: 1 })
  rates.addExecutions(now, 'pay', { total: 1, bad: 0 })
  rates.addBlocked(now, { total: 2, bad: 0 })
  rates.addBlocked(now + minuteMs, { total: 1, bad: 1 })
  expect(rates.blocked(now + minuteMs)).toEqual({ total: 3, bad: 1 })
  expect(rates.toolErrors(now + minuteMs).get('pay')).toEqual({ total: 2, bad: 1 })
  expect(rates.blocked(now + windowMs)).toEqual({ total: 1, bad: 1 })
  expect(rates.toolErrors(now + windowMs).size).toBe(0)
  expect(rates.blocked(now + 2 * windowMs)).toEqual({ total: 0, bad: 0 })
})
