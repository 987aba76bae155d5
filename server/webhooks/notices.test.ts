/** Notices say what an alert is about, in whole sentences, and never more than a reader can take. */
import { expect, test } from 'bun:test'
import type { Incident } from '../../db/webhook-store.ts'
import { incidentSentence } from './incident-words.ts'
import { alertNotices, endpointNotices } from './notices.ts'
import { makeEndpoint } from '../../tests/store/webhook-make.ts'

const share = { share: 0.7234, threshold: 0.5, events: 1_200, windowMinutes: 60 }

test.each<[Incident['data'], string]>([
  [{ vendor: 'GPTBot', firstSeenAt: '2026-06-23T12:00:00.000Z' }, 'A new vendor came: GPTBot.'],
  [share, 'Much is blocked: 72.3 % of 1200 events in an hour, more than 50 %.'],
  [{ tool: 'pay', ...share }, 'The tool pay fails: 72.3 % of 1200 events in an hour, more than 50 %.'],
  [
    { minutes: 1, lastEventAt: '2026-06-23T12:00:00.000Z' },
    'No event came for 1 minute; the last was at 2026-06-23T12:00:00.000Z.',
  ],
  [
    { keyId: 'key_1', label: 'shop', prefix: 'agtx_ik_ab', exposedAt: '2026-06-23T12:00:00.000Z' },
    'The key agtx_ik_ab… (shop) was seen in a browser.',
  ],
])('%j', (data, sentence) => {
  expect(incidentSentence({ data })).toBe(sentence)
})

test('five alerts are told one by one, the rest as a number', () => {
  const open = Array.from({ length: 8 }, (_, n): Incident => ({
    id: `inc_${n}`,
    orgId: 'org_1',
    ruleId: 'rul_1',
    subject: `v${n}`,
    openedAtMs: 0,
    resolvedAtMs: null,
    data: { vendor: `v${n}` },
  }))
  const told = alertNotices(open).map(({ code, message }) => [code, message])
  expect(told).toHaveLength(6)
  expect(told[0]).toEqual(['alert_open', 'Alert: A new vendor came: v0.'])
  expect(told[5]).toEqual(['alert_open', '3 more alerts are open.'])
  expect(alertNotices(open.slice(0, 5))).toHaveLength(5)
  expect(alertNotices([])).toEqual([])
})

test('an endpoint that is paused, failing or missed events is told of, a healthy one is not', () => {
  const of = (more: Parameters<typeof makeEndpoint>[2]) =>
    endpointNotices([makeEndpoint('org_1', 'ep_1', more)]).map(({ code, message }) => [code, message])
  expect(of({})).toEqual([])
  expect(of({ pausedReason: 'asked' })).toEqual([])
  expect(of({ failingSinceMs: 0 })).toEqual([
    ['endpoint_failing', 'http://receiver/ has failed since 1970-01-01T00:00:00.000Z.'],
  ])
  expect(of({ failingSinceMs: 0, pausedReason: 'failing' })[0]?.[0]).toBe('endpoint_paused_failing')
  expect(of({ failingSinceMs: 0, pausedReason: 'gone', missed: 3 })).toEqual([
    ['endpoint_paused_gone', 'http://receiver/ answered 410 Gone and is paused until somebody resumes it.'],
    ['events_missed', '3 events for http://receiver/ were removed by retention before they were sent.'],
  ])
})
