/** The messages that webhooks carry, for the reference: what a receiver gets, with schemas and examples. */
import { t } from 'elysia'
import { integer, nullable, time as wireTime } from '../http/wire-types.ts'
import { exampleEvent, exampleTime } from './examples.ts'

export interface WebhookMessage {
  type: string
  summary: string
  about: string
  schema: ReturnType<typeof t.Object>
  examples: object[]
}

const time = (description: string) => wireTime(description)
const envelope = <T extends string>(type: T) => ({
  type: t.Literal(type),
  timestamp: time('When the message was made.'),
})
const strict = { additionalProperties: false } as const

const batch = t.Object(
  {
    ...envelope('trace.batch'),
    data: t.Object(
      {
        sequence: integer({
          minimum: 0,
          description: 'Gapless per endpoint, from 1. A test has 0 and moves nothing.',
        }),
        events: t.Array(t.Object({}, { additionalProperties: true }), {
          minItems: 1,
          maxItems: 100,
          description: 'Events as they were sent, in the order of arrival.',
        }),
        test: t.Optional(t.Literal(true, { description: 'Only in what "Send test" sends.' })),
      },
      strict,
    ),
  },
  strict,
)

const kinds = ['new_vendor', 'blocked_share', 'tool_error_rate', 'silence', 'key_leaked'] as const
const severities = ['critical', 'warning', 'info'] as const
const alert = <T extends string>(type: T, resolvedAt: ReturnType<typeof nullable>) =>
  t.Object(
    {
      ...envelope(type),
      text: t.String({
        description:
          'One sentence for people, which Slack, Mattermost and Microsoft Teams show. Names of strangers in it cannot ' +
          'become links or mentions; the exact values are in data.',
      }),
      data: t.Object(
        {
          rule: t.Union(kinds.map((kind) => t.Literal(kind))),
          ruleId: t.String(),
          incidentId: t.String({ description: 'The same when it is resolved.' }),
          subject: t.String({
            description: 'The vendor, tool or key it is about; empty for the organization.',
          }),
          severity: t.Union(severities.map((severity) => t.Literal(severity))),
          link: t.String({
            description:
              'The page of the dashboard that shows it, with range and filter: a path, or a whole address with --public-url.',
          }),
          openedAt: time('When the alert opened.'),
          resolvedAt,
          vendor: t.Optional(t.String({ description: 'Of new_vendor.' })),
          firstSeenAt: t.Optional(time('Of new_vendor: the arrival of its first event.')),
          tool: t.Optional(t.String({ description: 'Of tool_error_rate.' })),
          share: t.Optional(t.Number({ description: 'Of blocked_share and tool_error_rate, 0 to 1.' })),
          threshold: t.Optional(t.Number({ description: 'Of the same.' })),
          events: t.Optional(integer({ description: 'Of the same: the events the share is of.' })),
          windowMinutes: t.Optional(integer({ description: 'Of the same.' })),
          minutes: t.Optional(integer({ description: 'Of silence.' })),
          lastEventAt: t.Optional(time('Of silence: the arrival of the last event.')),
          keyId: t.Optional(t.String({ description: 'Of key_leaked.' })),
          label: t.Optional(t.String({ description: 'Of key_leaked.' })),
          prefix: t.Optional(t.String({ description: 'Of key_leaked: the first characters of the key.' })),
          exposedAt: t.Optional(time('Of key_leaked.')),
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
const vendor = {
  ...{ rule: 'new_vendor', ruleId: 'rul_example', incidentId: 'inc_example', subject: 'Example Agent' },
  severity: 'info',
  link: '/logs?vendor=Example+Agent&since=2026-06-23T10%3A59%3A12.000Z',
  ...{ openedAt: exampleTime, resolvedAt: null },
  ...{ vendor: 'Example Agent', firstSeenAt: '2026-06-23T11:59:12.000Z' },
}

export const webhookMessages: WebhookMessage[] = [
  {
    type: 'trace.batch',
    summary: 'New events of an endpoint',
    about:
      'At most 100 events and 512 KiB per message. The order in which messages arrive is not promised: sort by sequence. ' +
      'A message can arrive twice with the same webhook-id.',
    schema: batch,
    examples: [
      { type: 'trace.batch', timestamp: exampleTime, data: { sequence: 1, events: [exampleEvent] } },
      {
        type: 'trace.batch',
        timestamp: exampleTime,
        data: { sequence: 0, events: [{ ...exampleEvent, id: 'evt_test_example' }], test: true },
      },
    ],
  },
  {
    type: 'alert.opened',
    summary: 'An alert opened',
    about: 'Sent once per alert to the endpoint of its rule, whatever the filters of the endpoint are.',
    schema: alert('alert.opened', t.Null() as never),
    examples: [
      { type: 'alert.opened', timestamp: exampleTime, text: sentence, data: blocked },
      { type: 'alert.opened', timestamp: exampleTime, text: 'New vendor: Example Agent.', data: vendor },
    ],
  },
  {
    type: 'alert.resolved',
    summary: 'An alert is over',
    about: 'Sent once, with the incidentId of the message that opened it.',
    schema: alert('alert.resolved', wireTime('When it was over.') as never),
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
    type: 'endpoint.probe',
    summary: 'A failing endpoint is tried again',
    about:
      'Sent once an hour to an endpoint that is paused for failing, when none of its deliveries is waiting.',
    schema: t.Object({ ...envelope('endpoint.probe'), data: t.Object({}, strict) }, strict),
    examples: [{ type: 'endpoint.probe', timestamp: exampleTime, data: {} }],
  },
]
