/** The sentences, links and notices of alerts, and how many notices are shown. */
import { expect, test } from 'bun:test'
import type { Incident } from '../../../db/contract/alerts.ts'
import { alertNotices, chatText, endpointNotices, incidentSentence, linkOf, worstFirst } from './alerts.ts'
import { makeEndpoint } from '../../../tests/store/webhook-make.ts'

const share = { share: 0.7234, threshold: 0.5, events: 1_200, windowMinutes: 60 }

const counting = {
  measure: 'count',
  name: 'Busy',
  value: 120,
  events: 120,
  windowMinutes: 60,
  noData: false,
  condition: { kind: 'above', value: 100 },
}

test.each<[Incident['data'], string]>([
  [{ vendor: 'GPTBot', firstSeenAt: '2026-06-23T12:00:00.000Z' }, 'New vendor: GPTBot.'],
  [share, 'High blocked share: 72.3 % of 1,200 events in the last hour (threshold 50 %).'],
  [
    { tool: 'pay', ...share },
    'High error rate of tool pay: 72.3 % of 1,200 executions in the last hour (threshold 50 %).',
  ],
  [
    { minutes: 1, lastEventAt: '2026-06-23T12:00:00.000Z' },
    'No events for 1 minute. The last event arrived at 2026-06-23T12:00:00.000Z.',
  ],
  [
    { keyId: 'key_1', label: 'shop', prefix: 'agtx_ik_ab', exposedAt: '2026-06-23T12:00:00.000Z' },
    'Ingest key agtx_ik_ab… (shop) was used from a browser.',
  ],
  [
    { ...counting, filter: { type: ['agent.requested'] } },
    'Busy: 120 requests in 1 hour, above 100 requests.',
  ],
  [{ ...counting, filter: { type: ['agent.detected'] } }, 'Busy: 120 visits in 1 hour, above 100 visits.'],
  [{ ...counting, filter: { type: ['agent.*'] } }, 'Busy: 120 events in 1 hour, above 100 events.'],
  [{ ...counting, filter: {} }, 'Busy: 120 events in 1 hour, above 100 events.'],
  [{ ...counting, noData: true, filter: { type: ['agent.requested'] } }, 'Busy: no requests in 1 hour.'],
])('%j', (data, sentence) => {
  expect(incidentSentence({ data })).toBe(sentence)
})

const incident = (id: string, fields: Partial<Incident> = {}): Incident => ({
  id,
  orgId: 'org_1',
  ruleId: 'rul_1',
  subject: id,
  state: 'firing',
  clearSinceMs: null,
  openedAtMs: Date.UTC(2026, 5, 23, 12),
  resolvedAtMs: null,
  acknowledgedAtMs: null,
  acknowledgedBy: null,
  data: { vendor: id },
  ...fields,
})

test('alerts are sorted by state, then severity, then excess over the threshold, newest first', () => {
  const shown = worstFirst([
    incident('resolved', { resolvedAtMs: 9e12, data: { keyId: 'k' } }),
    incident('vendor'),
    incident('newer vendor', { openedAtMs: 8e12 }),
    incident('acknowledged', { acknowledgedAtMs: 1, data: { keyId: 'k' } }),
    incident('slightly over', { data: { ...share, share: 0.6 } }),
    incident('far over', { data: { tool: 'pay', ...share, share: 0.9 } }),
    incident('leaked', { data: { keyId: 'k' } }),
  ]).map(({ id }) => id)
  expect(shown).toEqual([
    'leaked',
    'far over',
    'slightly over',
    'newer vendor',
    'vendor',
    'acknowledged',
    'resolved',
  ])
  expect(alertNotices([incident('acknowledged', { acknowledgedAtMs: 1 })])).toEqual([])
})

test.each<[Incident['data'], string]>([
  [share, '/logs?outcome=blocked&since=2026-06-23T11%3A00%3A00.000Z'],
  [
    { vendor: 'A&B', firstSeenAt: '2026-06-23T11:59:00.000Z' },
    '/logs?vendor=A%26B&since=2026-06-23T10%3A59%3A00.000Z',
  ],
  [
    { tool: 'pay', ...share },
    '/logs?type=tool.executed&tool=pay&outcome=error&since=2026-06-23T11%3A00%3A00.000Z',
  ],
  [{ minutes: 9, lastEventAt: '2026-06-23T11:51:00.000Z' }, '/logs?since=2026-06-23T10%3A51%3A00.000Z'],
  [{ keyId: 'key_1' }, '/settings/ingest-keys'],
])('an alert with %j links to its events', (data, link) => {
  expect(linkOf(incident('i', { data }))).toBe(link)
})

test('a name in a message is never a link, mention or markup, and is cut at 100 characters', () => {
  const textOf = (vendor: string) => chatText(incident('i', { data: { vendor } }), '', null)
  expect(textOf('GPTBot')).toBe('New vendor: GPTBot.')
  for (const name of [
    '<!channel>',
    '<http://evil.example|Slack>',
    '[here](http://evil.example)',
    '@everyone',
    '@here\u202e',
    'www.evil.example',
    '`code` *bold* ~gone~',
    'two\nlines\u2028three',
  ]) {
    expect(textOf(name)).not.toMatch(/[<>@[\]|`*~\n\u2028\u202e]|:\/\/|www\./)
  }
  expect(textOf('x'.repeat(500))).toBe(`New vendor: ${'x'.repeat(100)}….`)
  const resolvedIncident = incident('i', { resolvedAtMs: 1 })
  expect(chatText(resolvedIncident, 'Resolved: ', 'https://a.example/logs')).toBe(
    'Resolved: New vendor: i. https://a.example/logs',
  )
})

test('five alerts have their own notice; one more notice counts the rest', () => {
  const open = Array.from({ length: 8 }, (_, n): Incident => ({
    id: `inc_${n}`,
    orgId: 'org_1',
    ruleId: 'rul_1',
    subject: `v${n}`,
    state: 'firing',
    openedAtMs: 0,
    clearSinceMs: null,
    resolvedAtMs: null,
    acknowledgedAtMs: null,
    acknowledgedBy: null,
    data: { vendor: `v${n}` },
  }))
  const notices = alertNotices(open).map(({ code, message }) => [code, message])
  expect(notices).toHaveLength(6)
  expect(notices[0]).toEqual(['alert_open', 'Alert: New vendor: v0.'])
  expect(notices[5]).toEqual(['alert_open', '3 more alerts are open.'])
  expect(alertNotices(open.slice(0, 5))).toHaveLength(5)
  expect(alertNotices([])).toEqual([])
})

test('an endpoint that is paused, failing or missed events has a notice; a healthy one has none', () => {
  const noticesFor = (fields: Parameters<typeof makeEndpoint>[2]) =>
    endpointNotices([makeEndpoint('org_1', 'ep_1', fields)]).map(({ code, message }) => [code, message])
  expect(noticesFor({})).toEqual([])
  expect(noticesFor({ pausedReason: 'asked' })).toEqual([])
  expect(noticesFor({ failingSinceMs: 0 })).toEqual([
    ['endpoint_failing', 'Deliveries to http://receiver/ have failed since 1970-01-01T00:00:00.000Z.'],
  ])
  expect(noticesFor({ failingSinceMs: 0, pausedReason: 'failing' })[0]?.[0]).toBe('endpoint_paused_failing')
  expect(noticesFor({ failingSinceMs: 0, pausedReason: 'gone', missed: 3 })).toEqual([
    ['endpoint_paused_gone', 'http://receiver/ answered 410 Gone. It is paused until somebody resumes it.'],
    ['events_missed', 'Retention deleted 3 events before they were sent to http://receiver/.'],
  ])
})
