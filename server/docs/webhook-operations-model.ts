/** The reference of webhooks: deliveries, endpoints, rules. */
import { t } from 'elysia'
import { exampleTime } from './examples.ts'
import type { Operation } from './operation-model.ts'
import { cursor, limit } from './operation-model.ts'
import * as model from './webhooks-model.ts'

const url = 'https://hooks.example.com/sightglass'
const delivery = {
  id: 'wh_example',
  orgId: 'org_example',
  endpointId: null,
  url,
  payload: { hello: 'world' },
  status: 'pending',
  attempts: 0,
  nextAttemptAt: exampleTime,
  lastError: null,
  lastStatus: null,
  scheduledAt: exampleTime,
  deliveredAt: null,
}
const endpoint = {
  id: 'ep_example',
  orgId: 'org_example',
  url,
  label: 'Warehouse',
  types: ['authz.*'],
  outcomes: ['blocked'],
  classes: [],
  sites: [],
  batchSize: 100,
  retryWaits: null,
  status: 'active',
  pausedReason: null,
  pausedAt: null,
  position: 0,
  sequence: 0,
  missed: 0,
  replayUntil: null,
  resumePosition: null,
  pending: 0,
  delivered: 0,
  deadLetters: 0,
  createdAt: exampleTime,
  lastSuccessAt: null,
  failingSince: null,
  nextProbeAt: null,
  oldSecretUntil: null,
}
const rule = {
  id: 'rul_example',
  endpointId: 'ep_example',
  kind: 'silence',
  threshold: null,
  minutes: 30,
  eventsMin: null,
  createdAt: exampleTime,
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
const deliveryParam = { id: { description: 'The id of the delivery.', example: 'wh_example' } }
const endpointParam = { id: { description: 'The id of the endpoint.', example: 'ep_example' } }
const ruleParam = { id: { description: 'The id of the rule.', example: 'rul_example' } }
const noBody = { schema: model.empty, example: {}, optional: true } as const
const oneEndpoint = {
  description: 'As it is now.',
  schema: t.Object({ endpoint: model.endpoint }),
  example: { endpoint },
}
const secretOnce = {
  description: 'With its signing secret, shown once.',
  schema: model.withSecret,
  example: { endpoint, secret: 'whsec_…' },
}

const deliveries: Operation[] = [
  {
    ...writes,
    id: 'testWebhook',
    path: '/v1/webhooks/test',
    summary: 'Schedule one delivery',
    about:
      'Sent within a second, signed by Standard Webhooks with the signing secret of the organization. The payload is `{}` ' +
      'when left out. A private address, `localhost` and other schemes than http and https are refused at once. A host name ' +
      'is looked up when the delivery is sent: an unknown one, or one that leads to a private address, fails then.',
    body: { schema: model.testBody, example: { url, payload: { hello: 'world' } } },
    answers: {
      202: {
        description: 'Scheduled.',
        schema: model.scheduled,
        example: { ok: true, deliveryId: 'wh_example' },
      },
    },
  },
  {
    ...reads,
    id: 'listDeliveries',
    path: '/v1/webhooks',
    summary: 'List deliveries, dead letters included',
    query: {
      status: { schema: model.status, description: 'Only those in this state.', example: 'pending' },
      endpointId: { schema: t.String(), description: 'Only those of this endpoint.' },
      limit: limit(50, 200),
      cursor,
    },
    answers: {
      200: {
        description: 'A page of deliveries, newest first.',
        schema: t.Object({
          deliveries: t.Array(model.delivery),
          nextCursor: t.Union([t.String(), t.Null()]),
        }),
        example: { deliveries: [delivery], nextCursor: null },
      },
    },
  },
  {
    ...reads,
    id: 'getDelivery',
    path: '/v1/webhooks/{id}',
    summary: 'One delivery and its attempts',
    params: deliveryParam,
    answers: {
      200: {
        description: 'The delivery.',
        schema: model.deliveryWithAttempts,
        example: { ...delivery, attemptLog: [] },
      },
    },
  },
  {
    ...writes,
    id: 'replayDelivery',
    path: '/v1/webhooks/{id}/replay',
    summary: 'Send a delivery again',
    about: 'The same record and message id; attempts count from 0. A pending one answers 409.',
    params: deliveryParam,
    body: noBody,
    answers: {
      202: {
        description: 'Pending again.',
        schema: model.scheduled,
        example: { ok: true, deliveryId: 'wh_example' },
      },
    },
    errors: ['conflict'],
  },
]

const endpoints: Operation[] = [
  {
    ...reads,
    id: 'listEndpoints',
    path: '/v1/webhooks/endpoints',
    summary: 'List endpoints',
    answers: {
      200: {
        description: 'All of them.',
        schema: t.Object({ endpoints: t.Array(model.endpoint) }),
        example: { endpoints: [endpoint] },
      },
    },
  },
  {
    ...writes,
    id: 'createEndpoint',
    path: '/v1/webhooks/endpoints',
    summary: 'Create an endpoint',
    about: 'From now on matching events go there in batches with gapless sequence numbers.',
    body: {
      schema: model.endpointBody,
      example: { url, label: 'Warehouse', types: ['authz.*'], outcomes: ['blocked'] },
    },
    answers: {
      201: {
        description: 'With its signing secret, shown once.',
        schema: model.created,
        example: { endpoint, secret: 'whsec_…', warnings: [] },
      },
    },
    errors: ['conflict'],
  },
  {
    ...reads,
    id: 'getEndpoint',
    path: '/v1/webhooks/endpoints/{id}',
    summary: 'One endpoint',
    params: endpointParam,
    answers: { 200: oneEndpoint },
  },
  {
    ...writes,
    method: 'patch',
    id: 'changeEndpoint',
    path: '/v1/webhooks/endpoints/{id}',
    summary: 'Change an endpoint',
    params: endpointParam,
    body: { schema: model.endpointChange, example: { label: 'Warehouse, nightly' } },
    answers: {
      200: { description: 'As it is now.', schema: model.changed, example: { endpoint, warnings: [] } },
    },
  },
  ...(['pause', 'resume'] as const).map((action): Operation => ({
    ...writes,
    id: `${action}Endpoint`,
    path: `/v1/webhooks/endpoints/{id}/${action}`,
    summary: action === 'pause' ? 'Pause an endpoint; nothing is lost' : 'Resume an endpoint',
    params: endpointParam,
    body: noBody,
    answers: { 200: oneEndpoint },
  })),
  {
    ...writes,
    id: 'rotateEndpointSecret',
    path: '/v1/webhooks/endpoints/{id}/rotate-secret',
    summary: 'Give an endpoint a new signing secret',
    about: 'For 24 hours messages are signed with the old one too.',
    params: endpointParam,
    body: noBody,
    answers: { 200: secretOnce },
  },
  {
    ...writes,
    id: 'testEndpoint',
    path: '/v1/webhooks/endpoints/{id}/test',
    summary: 'Send an endpoint a test',
    about:
      'A trace.batch with one sample event that passes its filters, signed with its secret. It is marked with "test": true, ' +
      'has the sequence 0, and the sequence of the endpoint stays as it is. A paused endpoint answers 409.',
    params: endpointParam,
    body: noBody,
    answers: {
      202: {
        description: 'Scheduled.',
        schema: model.scheduled,
        example: { ok: true, deliveryId: 'wh_example' },
      },
    },
    errors: ['conflict'],
  },
  {
    ...writes,
    id: 'replayEndpoint',
    path: '/v1/webhooks/endpoints/{id}/replay',
    summary: 'Deliver a range again',
    about:
      'The position goes back to the beginning of the range, and with its end jumps to where it was: what is new waits that ' +
      'long. Batches get new sequence numbers and ids.',
    params: endpointParam,
    body: { schema: model.replayBody, example: { from: 0 } },
    answers: {
      202: {
        description: 'The range is sent before what is new.',
        schema: t.Object({ ok: t.Literal(true), endpoint: model.endpoint }),
        example: { ok: true, endpoint },
      },
    },
  },
  {
    ...writes,
    method: 'delete',
    id: 'deleteEndpoint',
    path: '/v1/webhooks/endpoints/{id}',
    summary: 'Delete an endpoint',
    params: endpointParam,
    answers: { 200: { description: 'Gone.', schema: model.done, example: { ok: true } } },
  },
]

const rules: Operation[] = [
  {
    ...reads,
    id: 'listRules',
    path: '/v1/webhooks/rules',
    summary: 'List rules that speak',
    answers: {
      200: {
        description: 'All of them.',
        schema: t.Object({ rules: t.Array(model.rule) }),
        example: { rules: [rule] },
      },
    },
  },
  {
    ...writes,
    id: 'createRule',
    path: '/v1/webhooks/rules',
    summary: 'Create a rule',
    about: 'What it finds is told to its endpoint as alert.opened and alert.resolved.',
    body: { schema: model.ruleBody, example: { kind: 'silence', endpointId: 'ep_example', minutes: 30 } },
    answers: { 201: { description: 'Made.', schema: t.Object({ rule: model.rule }), example: { rule } } },
    errors: ['conflict'],
  },
  {
    ...writes,
    method: 'patch',
    id: 'changeRule',
    path: '/v1/webhooks/rules/{id}',
    summary: 'Change the numbers of a rule',
    about: 'What it has open stays open until the next look, which resolves it when the new numbers say so.',
    params: ruleParam,
    body: { schema: model.ruleChange, example: { minutes: 45 } },
    answers: {
      200: { description: 'As it is now.', schema: t.Object({ rule: model.rule }), example: { rule } },
    },
  },
  {
    ...writes,
    method: 'delete',
    id: 'deleteRule',
    path: '/v1/webhooks/rules/{id}',
    summary: 'Delete a rule',
    params: ruleParam,
    answers: { 200: { description: 'Gone.', schema: model.done, example: { ok: true } } },
  },
  {
    ...reads,
    id: 'listIncidents',
    path: '/v1/webhooks/incidents',
    summary: 'List what rules found',
    query: {
      status: { schema: model.incidentStatus, description: 'Only those in this state.', example: 'open' },
    },
    answers: {
      200: {
        description: 'The worst first: open, then acknowledged, then resolved ones; 200 at most.',
        schema: t.Object({ incidents: t.Array(model.incident) }),
        example: { incidents: [incident] },
      },
    },
  },
  {
    ...writes,
    id: 'acknowledgeIncident',
    path: '/v1/webhooks/incidents/{id}/acknowledge',
    summary: 'Acknowledge an open alert',
    about:
      'It says that somebody takes care of it. A second time changes nothing; a resolved alert answers 409.',
    params: { id: { description: 'The id of the alert.', example: 'inc_example' } },
    body: noBody,
    answers: {
      200: {
        description: 'As it is now.',
        schema: t.Object({ incident: model.incident }),
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

export const webhookOperations: Operation[] = [...deliveries, ...endpoints, ...rules]
