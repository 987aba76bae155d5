/** The reference of alert rules and alerts: their schemas, and the operations on them. */
import { t } from 'elysia'
import { integer, nullable, time as wireTime } from '../http/field-models.ts'
import { limits } from '../limits.ts'
import { exampleTime, type Operation } from './operation-model.ts'
import { ruleKinds } from './webhook-messages-model.ts'
import { okModel, empty } from './webhooks-model.ts'

const time = wireTime()
const anyField = (description: string) => t.Optional(t.Unknown({ description }))

/** The definition of a rule of the kind measure. */
const definition = {
  name: anyField(`1 to ${limits.labelCharsMax} characters.`),
  filter: anyField(
    'measure only: values by field, as the filters of GET /v1/traces, ruleId, reason and page. A list matches any of its ' +
      'values, and an empty string matches events without the field.',
  ),
  measure: anyField('measure only: count, errors, share, sessions, subjects, p95 or tokens.'),
  of: anyField('measure share only: the filter of the events whose share is measured.'),
  condition: anyField(
    'measure only: { kind: above or below, value }, { kind: change, direction: up, down or both, deviations, weeks } or ' +
      '{ kind: absence }. A change is measured against the median of the same hour of the past weeks.',
  ),
  windowMinutes: anyField(
    'measure only: 1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440 or 10080. Default: 60.',
  ),
  forMinutes: anyField('measure only: how long it is pending before it fires. Default: 0.'),
  keepFiringMinutes: anyField('measure only: how long it still fires afterwards. Default: 0.'),
  noData: anyField('measure only: ok or alert. Default: ok.'),
  groupBy: anyField('measure only: a field; each of its values is evaluated by itself.'),
  groupsMax: anyField(
    `measure only: 1 to ${limits.alertGroupsMax} groups, those with the most events. Default: 20.`,
  ),
  notifyPending: anyField('measure only: send alert.pending, too. Default: false.'),
}
const backtestBody = t.Object({
  measure: t.Union(
    ['count', 'errors', 'share', 'sessions', 'subjects', 'p95', 'tokens'].map((measure) =>
      t.Literal(measure),
    ),
  ),
  condition: t.Object({}, { additionalProperties: true }),
  filter: t.Optional(t.Object({}, { additionalProperties: true })),
})
const definitionExample = {
  measure: 'count',
  filter: { type: ['agent.requested'], outcome: ['blocked'] },
  condition: { kind: 'above', value: 1_000 },
  windowMinutes: 60,
}
const nullableNumber = nullable(t.Number())
const backtestModel = t.Object({
  since: wireTime('The start of the tested period.'),
  until: time,
  complete: t.Boolean({ description: 'Whether they cover the whole period.' }),
  hourly: t.Boolean({ description: 'From hourly counts, which include expired events.' }),
  stepMinutes: integer({
    minimum: 1,
    description: 'Minutes between two evaluations. The server evaluates each minute.',
  }),
  fired: integer({ minimum: 0 }),
  noisy: t.Boolean({ description: 'More alerts than people read: nine or more.' }),
  threshold: nullableNumber,
  group: t.String({ description: 'The group of the values: the one with the most alerts.' }),
  groups: t.Array(t.Object({ group: t.String(), fired: integer({ minimum: 0 }) })),
  points: t.Array(
    t.Object({
      at: wireTime('The end of the window.'),
      value: nullableNumber,
      holds: t.Boolean(),
      expected: t.Optional(nullableNumber),
      low: t.Optional(nullableNumber),
      high: t.Optional(nullableNumber),
    }),
  ),
  incidents: t.Array(
    t.Object({
      group: t.String(),
      from: time,
      to: nullable(time),
      value: nullableNumber,
      expected: nullableNumber,
      noData: t.Boolean(),
    }),
    { description: 'Newest first, at most 200.' },
  ),
})
const backtestExample = {
  since: exampleTime,
  until: exampleTime,
  complete: true,
  hourly: true,
  stepMinutes: 60,
  fired: 1,
  noisy: false,
  threshold: 1_000,
  group: '',
  groups: [{ group: '', fired: 1 }],
  points: [{ at: exampleTime, value: 1_200, holds: true }],
  incidents: [{ group: '', from: exampleTime, to: null, value: 1_200, expected: null, noData: false }],
}
const silenceBody = t.Object({ until: nullable(wireTime('At most 90 days ahead.')) })

const ruleNumbers = {
  threshold: t.Optional(t.Unknown({ description: 'blocked_share and tool_error_rate only: 0 to 1.' })),
  minutes: t.Optional(integer({ minimum: 1, description: 'silence only: minutes without events.' })),
  eventsMin: t.Optional(
    t.Unknown({ description: 'Ignored below this many events. Not for new_vendor, silence and key_leaked.' }),
  ),
}

const ruleBody = t.Object({
  kind: t.Union(ruleKinds.map((kind) => t.Literal(kind))),
  endpointId: t.String(),
  ...ruleNumbers,
  ...definition,
})
const ruleChange = t.Object({ ...ruleNumbers, ...definition })
const incidentStatus = t.Union([t.Literal('open'), t.Literal('resolved')])
const ruleModel = t.Object({
  id: t.String(),
  endpointId: t.String(),
  kind: t.String(),
  threshold: nullable(t.Number()),
  minutes: nullable(integer()),
  eventsMin: nullable(integer()),
  createdAt: time,
  name: t.String({ description: 'Empty for fixed kinds without a name.' }),
  fromFile: t.Boolean({ description: 'Defined in the setup file, and only changed there.' }),
  silencedUntil: nullable(time),
  measure: t.Optional(t.String({ description: 'measure only, with the other fields of its definition.' })),
})
const incidentModel = t.Object({
  id: t.String(),
  ruleId: t.String(),
  subject: t.String(),
  status: t.Union(['open', 'acknowledged', 'pending', 'resolved'].map((status) => t.Literal(status))),
  severity: t.Union([t.Literal('critical'), t.Literal('warning'), t.Literal('info')]),
  message: t.String({ description: 'One readable sentence.' }),
  link: t.String({ description: 'The dashboard page of the incident, with range and filter.' }),
  openedAt: time,
  acknowledgedAt: nullable(time),
  acknowledgedBy: nullable(t.String({ description: 'user:… or key:…, as in the audit log.' })),
  resolvedAt: nullable(time),
  data: t.Object({}, { additionalProperties: true }),
})

const rule = {
  id: 'rul_example',
  endpointId: 'ep_example',
  kind: 'silence',
  threshold: null,
  minutes: 30,
  eventsMin: null,
  createdAt: exampleTime,
  name: '',
  fromFile: false,
  silencedUntil: null,
}

const incident = {
  id: 'inc_example',
  ruleId: 'rul_example',
  subject: '',
  status: 'open',
  severity: 'warning',
  message: 'High blocked share: 72.3 % of 1,200 events in the last hour (threshold 50 %).',
  link: '/logs?outcome=blocked&since=2026-06-23T11%3A00%3A00.000Z',
  openedAt: exampleTime,
  acknowledgedAt: null,
  acknowledgedBy: null,
  resolvedAt: null,
  data: { share: 0.723, threshold: 0.5, events: 1_200, windowMinutes: 60 },
}

const reads = { method: 'get', key: 'secret', scope: 'webhooks:read', tag: 'Webhooks' } as const
const writes = { method: 'post', key: 'secret', scope: 'webhooks:write', tag: 'Webhooks' } as const
const ruleParam = { id: { description: 'The alert rule id.', example: 'rul_example' } }
const noBody = { schema: empty, example: {}, optional: true } as const

export const alertOperations: Operation[] = [
  {
    ...reads,
    id: 'listRules',
    path: '/v1/webhooks/rules',
    summary: 'List alert rules',
    answers: {
      200: {
        description: 'All alert rules.',
        schema: t.Object({ rules: t.Array(ruleModel) }),
        example: { rules: [rule] },
      },
    },
  },
  {
    ...writes,
    id: 'createRule',
    path: '/v1/webhooks/rules',
    summary: 'Create an alert rule',
    about:
      'The endpoint receives alert.opened and alert.resolved. A rule of the kind measure compares a measure of the events ' +
      'that match its filter with a number or with its own past; it needs a name.',
    body: { schema: ruleBody, example: { kind: 'silence', endpointId: 'ep_example', minutes: 30 } },
    answers: {
      201: { description: 'The alert rule.', schema: t.Object({ rule: ruleModel }), example: { rule } },
    },
    errors: ['conflict'],
  },
  {
    ...writes,
    method: 'patch',
    id: 'changeRule',
    path: '/v1/webhooks/rules/{id}',
    summary: 'Update an alert rule',
    about: 'Open alerts stay open until the next evaluation with the new values.',
    params: ruleParam,
    body: { schema: ruleChange, example: { minutes: 45 } },
    answers: {
      200: { description: 'The alert rule.', schema: t.Object({ rule: ruleModel }), example: { rule } },
    },
  },
  {
    ...writes,
    id: 'silenceRule',
    path: '/v1/webhooks/rules/{id}/silence',
    summary: 'Silence an alert rule',
    about: 'It opens no alert until then. Open alerts resolve as usual. null ends a silence.',
    params: ruleParam,
    body: { schema: silenceBody, example: { until: null } },
    answers: {
      200: { description: 'The alert rule.', schema: t.Object({ rule: ruleModel }), example: { rule } },
    },
  },
  {
    ...reads,
    method: 'post',
    id: 'backtestRule',
    path: '/v1/webhooks/rules/backtest',
    summary: 'Back-test an alert rule',
    about:
      'Returns the alerts that a rule of the kind measure would have raised in the last 30 days, without saving it. Hourly ' +
      'counts answer filters on type, outcome, site and one other field. Other filters, windows below an hour, sessions, ' +
      'identities and tokens are read from stored events, as far back as 1 s allows; `since` says how far.',
    body: { schema: backtestBody, example: definitionExample },
    answers: {
      200: {
        description: 'The alerts and the measured values.',
        schema: backtestModel,
        example: backtestExample,
      },
    },
  },
  {
    ...writes,
    method: 'delete',
    id: 'deleteRule',
    path: '/v1/webhooks/rules/{id}',
    summary: 'Delete an alert rule',
    params: ruleParam,
    answers: { 200: { description: 'Deleted.', schema: okModel, example: { ok: true } } },
  },
  {
    ...reads,
    id: 'listIncidents',
    path: '/v1/webhooks/incidents',
    summary: 'List incidents',
    query: {
      status: {
        schema: incidentStatus,
        description: 'Only incidents with this status.',
        example: 'open',
      },
    },
    answers: {
      200: {
        description: 'At most 200 incidents: open, then acknowledged, pending and resolved.',
        schema: t.Object({ incidents: t.Array(incidentModel) }),
        example: { incidents: [incident] },
      },
    },
  },
  {
    ...writes,
    id: 'acknowledgeIncident',
    path: '/v1/webhooks/incidents/{id}/acknowledge',
    summary: 'Acknowledge an incident',
    about:
      'Records who takes care of it. Acknowledging it again changes nothing. A pending or resolved incident answers 409.',
    params: { id: { description: 'The incident id.', example: 'inc_example' } },
    body: noBody,
    answers: {
      200: {
        description: 'The incident.',
        schema: t.Object({ incident: incidentModel }),
        example: {
          incident: {
            ...incident,
            status: 'acknowledged',
            acknowledgedAt: exampleTime,
            acknowledgedBy: 'user:usr_example',
          },
        },
      },
    },
    errors: ['conflict'],
  },
]
