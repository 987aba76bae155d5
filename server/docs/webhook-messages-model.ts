/** The messages that webhook receivers get, for the reference: their schemas with examples. */
import { t } from 'elysia'
import { integer, nullable, time as wireTime } from '../http/field-models.ts'
import { exampleEvent, exampleTime } from './operation-model.ts'
import { exampleRecord, recordModel } from './record-model.ts'

const count = integer({ minimum: 0 })

/** A message that a receiver gets. */
export interface WebhookMessage {
  type: string
  summary: string
  about: string
  schema: ReturnType<typeof t.Object>
  examples: object[]
}

const envelope = <T extends string>(type: T) => ({
  type: t.Literal(type),
  timestamp: wireTime('When the message was created.'),
})
const strict = { additionalProperties: false } as const

const batch = t.Object(
  {
    ...envelope('trace.batch'),
    data: t.Object(
      {
        sequence: integer({
          minimum: 0,
          description: 'Per endpoint, from 1, without gaps. A test message has 0 and does not count.',
        }),
        events: t.Array(t.Object({}, { additionalProperties: true }), {
          minItems: 1,
          maxItems: 100,
          description: 'Events as they were sent, in order of arrival.',
        }),
        records: t.Array(recordModel, {
          minItems: 1,
          maxItems: 100,
          description:
            'The record of each event, in the order of events. network is always null, because deliveries are stored longer.',
        }),
        test: t.Optional(t.Literal(true, { description: 'Only in test messages.' })),
      },
      strict,
    ),
  },
  strict,
)

export const ruleKinds = [
  'new_vendor',
  'blocked_share',
  'tool_error_rate',
  'silence',
  'key_leaked',
  'measure',
] as const
/** Beside the others, in alerts of rules that compare a measure. */
const measureData = {
  state: t.Optional(
    t.Union(
      ['pending', 'firing', 'resolved'].map((state) => t.Literal(state)),
      { description: 'measure only.' },
    ),
  ),
  name: t.Optional(t.String({ description: 'measure only: the name of the rule.' })),
  measure: t.Optional(t.String({ description: 'measure only: what the rule measures.' })),
  value: t.Optional(
    nullable(t.Number({ description: 'measure only: the measured value; null without data.' })),
  ),
  noData: t.Optional(
    t.Boolean({ description: 'measure only: the alert opened because there are no events.' }),
  ),
  filter: t.Optional(t.Object({}, { additionalProperties: true, description: 'measure only: the filter.' })),
  condition: t.Optional(
    t.Object({}, { additionalProperties: true, description: 'measure only: the condition.' }),
  ),
  expected: t.Optional(t.Number({ description: 'measure only: the usual value, for a change.' })),
  deviation: t.Optional(t.Number({ description: 'measure only: the usual distance from it.' })),
  groupBy: t.Optional(t.String({ description: 'measure only: the field that the rule groups by.' })),
  group: t.Optional(t.String({ description: 'measure only: the value of that field.' })),
  explanation: t.Optional(t.String({ description: 'measure only: what explains most of the change.' })),
  explained: t.Optional(
    t.Object(
      {
        comparedWith: t.String({ description: 'week before, or window before.' }),
        before: count,
        now: count,
        causes: t.Array(t.Object({ field: t.String(), value: t.String(), before: count, now: count })),
      },
      { description: 'measure only: exact numbers of events behind the explanation.' },
    ),
  ),
}
const severities = ['critical', 'warning', 'info'] as const
const alert = <T extends string>(type: T, resolvedAt: ReturnType<typeof nullable>) =>
  t.Object(
    {
      ...envelope(type),
      text: t.String({
        description:
          'One readable sentence, shown by Slack, Mattermost and Microsoft Teams. Names from events are escaped, so ' +
          'they cannot become links or mentions. The exact values are in data.',
      }),
      data: t.Object(
        {
          rule: t.Union(ruleKinds.map((kind) => t.Literal(kind))),
          ruleId: t.String(),
          incidentId: t.String({ description: 'Also in the message that resolves the alert.' }),
          subject: t.String({
            description: 'The vendor, tool, key or group. Empty for the organization.',
          }),
          severity: t.Union(severities.map((severity) => t.Literal(severity))),
          link: t.String({
            description:
              'The dashboard page of the alert, with range and filter. A path, or a URL when --public-url is set.',
          }),
          openedAt: wireTime('When the alert opened.'),
          resolvedAt,
          vendor: t.Optional(t.String({ description: 'new_vendor only.' })),
          firstSeenAt: t.Optional(wireTime('new_vendor only: arrival of its first event.')),
          tool: t.Optional(t.String({ description: 'tool_error_rate only.' })),
          share: t.Optional(
            t.Number({ description: 'blocked_share and tool_error_rate only: the measured share, 0 to 1.' }),
          ),
          threshold: t.Optional(
            t.Number({ description: 'blocked_share and tool_error_rate only: the threshold of the rule.' }),
          ),
          events: t.Optional(
            integer({
              description: 'blocked_share, tool_error_rate and measure: the number of events in the window.',
            }),
          ),
          windowMinutes: t.Optional(
            integer({ description: 'blocked_share, tool_error_rate and measure: the length of the window.' }),
          ),
          ...measureData,
          minutes: t.Optional(integer({ description: 'silence only: minutes without events.' })),
          lastEventAt: t.Optional(wireTime('silence only: arrival of the last event.')),
          keyId: t.Optional(t.String({ description: 'key_leaked only: the key id.' })),
          label: t.Optional(t.String({ description: 'key_leaked only: the label of the key.' })),
          prefix: t.Optional(t.String({ description: 'key_leaked only: the first characters of the key.' })),
          exposedAt: t.Optional(wireTime('key_leaked only: when the key arrived from a browser.')),
        },
        strict,
      ),
    },
    strict,
  )

const blocked = {
  rule: 'blocked_share',
  ruleId: 'rul_example',
  incidentId: 'inc_example',
  subject: '',
  severity: 'warning',
  link: '/logs?outcome=blocked&since=2026-06-23T11%3A00%3A00.000Z',
  openedAt: exampleTime,
  resolvedAt: null,
  share: 0.723,
  threshold: 0.5,
  events: 1_200,
  windowMinutes: 60,
}
const sentence = 'High blocked share: 72.3 % of 1,200 events in the last hour (threshold 50 %).'
const measured = {
  rule: 'measure',
  ruleId: 'rul_example',
  incidentId: 'inc_example',
  subject: '',
  severity: 'warning',
  link: '/logs?type=agent.requested&since=2026-06-23T11%3A00%3A00.000Z',
  openedAt: exampleTime,
  resolvedAt: null,
  state: 'pending',
  name: 'Many bots',
  measure: 'count',
  value: 1_200,
  events: 1_200,
  windowMinutes: 60,
  noData: false,
  filter: { type: ['agent.requested'] },
  condition: { kind: 'above', value: 1_000 },
}
const vendor = {
  rule: 'new_vendor',
  ruleId: 'rul_example',
  incidentId: 'inc_example',
  subject: 'Example Agent',
  severity: 'info',
  link: '/logs?vendor=Example+Agent&since=2026-06-23T10%3A59%3A12.000Z',
  openedAt: exampleTime,
  resolvedAt: null,
  vendor: 'Example Agent',
  firstSeenAt: '2026-06-23T11:59:12.000Z',
}

const report = t.Object(
  {
    ...envelope('report.ready'),
    text: t.String({ description: 'One readable sentence, as in alerts.' }),
    data: t.Object(
      {
        reportId: t.String({ description: 'The same for each period of a report.' }),
        every: t.Union(['day', 'week', 'month'].map((every) => t.Literal(every))),
        zone: t.String({ description: 'The time zone in which periods begin.' }),
        period: t.String({ description: 'The first day of the period, or its month.' }),
        since: wireTime('The start of the period.'),
        until: wireTime('The end of the period, exclusive.'),
        organization: t.String({ description: 'Its name.' }),
        sites: t.Array(t.String(), { description: 'Empty: all sites.' }),
        events: integer({ minimum: 0, description: 'The exact number of events of the period.' }),
        totals: t.Array(t.Object({ name: t.String(), count, before: nullable(count) }, strict), {
          description:
            'The headline numbers of the report: first Requests, or Visits where no site had requests. "before" is the previous period of the same length; null: it was counted in another unit.',
        }),
        link: t.String({
          description: 'The dashboard page of the period. A path, or a URL when --public-url is set.',
        }),
        fileName: t.String(),
        bytes: integer({ minimum: 1, description: 'The size of the file.' }),
        sha256: t.String({ description: 'The SHA-256 of the file in hexadecimal.' }),
        html: nullable(
          t.String({
            description:
              'The signed file, which `sightglass verify` checks. Null when the message would be larger than 512 KiB.',
          }),
        ),
      },
      strict,
    ),
  },
  strict,
)

export const webhookMessages: WebhookMessage[] = [
  {
    type: 'trace.batch',
    summary: 'New events for an endpoint',
    about:
      'At most 100 events and 512 KiB per message. Messages may arrive out of order; sort them by sequence. A message may ' +
      'arrive more than once, with the same webhook-id.',
    schema: batch,
    examples: [
      {
        type: 'trace.batch',
        timestamp: exampleTime,
        data: { sequence: 1, events: [exampleEvent], records: [exampleRecord] },
      },
      {
        type: 'trace.batch',
        timestamp: exampleTime,
        data: {
          sequence: 0,
          events: [{ ...exampleEvent, id: 'evt_test_example' }],
          records: [{ ...exampleRecord, key: null }],
          test: true,
        },
      },
    ],
  },
  {
    type: 'alert.opened',
    summary: 'An alert opened',
    about: 'Sent once per alert to the endpoint of its rule. The filters of the endpoint do not apply.',
    schema: alert('alert.opened', t.Null() as never),
    examples: [
      { type: 'alert.opened', timestamp: exampleTime, text: sentence, data: blocked },
      { type: 'alert.opened', timestamp: exampleTime, text: 'New vendor: Example Agent.', data: vendor },
    ],
  },
  {
    type: 'alert.pending',
    summary: 'An alert is pending',
    about: 'Sent only for rules with notifyPending, when the condition begins to hold.',
    schema: alert('alert.pending', t.Null() as never),
    examples: [
      {
        type: 'alert.pending',
        timestamp: exampleTime,
        text: 'Pending: Many bots: 1,200 events in 1 hour, above 1,000 events.',
        data: measured,
      },
    ],
  },
  {
    type: 'alert.resolved',
    summary: 'An alert was resolved',
    about: 'Sent once, with the incidentId of the message that opened it.',
    schema: alert('alert.resolved', wireTime('When the alert was resolved.') as never),
    examples: [
      {
        type: 'alert.resolved',
        timestamp: '2026-06-23T12:41:00.000Z',
        text: `Resolved: ${sentence}`,
        data: {
          ...blocked,
          link: `${blocked.link}&until=2026-06-23T12%3A41%3A00.000Z`,
          resolvedAt: '2026-06-23T12:41:00.000Z',
        },
      },
    ],
  },
  {
    type: 'report.ready',
    summary: 'A scheduled report',
    about:
      'Sent once per period to the endpoints of a report (--report). The filters of the endpoint do not apply. The webhook-id is ' +
      'the same in every attempt.',
    schema: report,
    examples: [
      {
        type: 'report.ready',
        timestamp: '2026-06-22T00:10:00.000Z',
        text: 'Weekly report of Example: week of 2026-06-15 (UTC). 22,310 requests (19,007 before).',
        data: {
          reportId: 'report_4d1c2e0f9ab35678',
          every: 'week',
          zone: 'UTC',
          period: '2026-06-15',
          since: '2026-06-15T00:00:00.000Z',
          until: '2026-06-22T00:00:00.000Z',
          organization: 'Example',
          sites: [],
          events: 48_210,
          totals: [{ name: 'Requests', count: 22_310, before: 19_007 }],
          link: '/analytics?since=2026-06-15T00%3A00%3A00.000Z&until=2026-06-22T00%3A00%3A00.000Z',
          fileName: 'sightglass-example-week-2026-06-15-9ab35678.html',
          bytes: 81_344,
          sha256: 'cfb7b6e8d9d1e0f3f0b7a9f1b6a1d8c2e3f4a5b6c7d8e9f0a1b2c3d4e5f60718',
          html: '<!doctype html>…',
        },
      },
    ],
  },
  {
    type: 'endpoint.probe',
    summary: 'A probe of a failing endpoint',
    about:
      'Sent once per hour to an endpoint that was paused because it failed, when it has no pending delivery. A 2xx response ' +
      'resumes the endpoint.',
    schema: t.Object({ ...envelope('endpoint.probe'), data: t.Object({}, strict) }, strict),
    examples: [{ type: 'endpoint.probe', timestamp: exampleTime, data: {} }],
  },
]
