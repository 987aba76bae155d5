/** The reference of webhooks: deliveries and endpoints. */
import * as model from './webhooks-model.ts'
import { t } from 'elysia'
import { cursor, exampleTime, limit, type Operation } from './operation-model.ts'

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
  waitingFor: { reason: 'response', until: exampleTime },
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
const reads = { method: 'get', key: 'secret', scope: 'webhooks:read', tag: 'Webhooks' } as const
const writes = { method: 'post', key: 'secret', scope: 'webhooks:write', tag: 'Webhooks' } as const
const deliveryParam = { id: { description: 'The id of the delivery.', example: 'wh_example' } }
const endpointParam = { id: { description: 'The id of the endpoint.', example: 'ep_example' } }
const noBody = { schema: model.empty, example: {}, optional: true } as const
const oneEndpoint = {
  description: 'The endpoint.',
  schema: t.Object({ endpoint: model.endpoint }),
  example: { endpoint },
}
const secretOnce = {
  description: 'The endpoint and its new signing secret, which is shown once.',
  schema: model.withSecret,
  example: { endpoint, secret: 'whsec_…' },
}

const deliveries: Operation[] = [
  {
    ...writes,
    id: 'testWebhook',
    path: '/v1/webhooks/test',
    summary: 'Send a payload to a URL',
    about:
      'Sends the payload (default {}) within a second, signed with the signing secret of the organization (Standard ' +
      'Webhooks). Private addresses, localhost and schemes other than http and https are rejected. A host name is resolved ' +
      'when the delivery is sent; the attempt fails when the name is unknown or resolves to a private address.',
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
    summary: 'List deliveries',
    query: {
      status: {
        schema: model.status,
        description: 'Only deliveries with this status. Dead letters are deliveries, too.',
        example: 'pending',
      },
      endpointId: { schema: t.String(), description: 'Only deliveries to this endpoint.' },
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
    summary: 'Get a delivery and its attempts',
    params: deliveryParam,
    answers: {
      200: {
        description: 'The delivery and its attempts.',
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
    about:
      'Keeps the delivery and its message id, and resets the attempts to 0. A pending delivery answers 409.',
    params: deliveryParam,
    body: noBody,
    answers: {
      202: {
        description: 'The delivery is pending again.',
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
        description: 'All endpoints.',
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
    about:
      'Events that match the filters and arrive from now on are sent in batches, with sequence numbers without gaps.',
    body: {
      schema: model.endpointBody,
      example: { url, label: 'Warehouse', types: ['authz.*'], outcomes: ['blocked'] },
    },
    answers: {
      201: {
        description: 'The endpoint and its signing secret, which is shown once.',
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
    summary: 'Get an endpoint',
    params: endpointParam,
    answers: { 200: oneEndpoint },
  },
  {
    ...writes,
    method: 'patch',
    id: 'changeEndpoint',
    path: '/v1/webhooks/endpoints/{id}',
    summary: 'Update an endpoint',
    params: endpointParam,
    body: { schema: model.endpointChange, example: { label: 'Warehouse, nightly' } },
    answers: {
      200: {
        description: 'The endpoint, and warnings.',
        schema: model.changed,
        example: { endpoint, warnings: [] },
      },
    },
  },
  ...(['pause', 'resume'] as const).map((action): Operation => ({
    ...writes,
    id: `${action}Endpoint`,
    path: `/v1/webhooks/endpoints/{id}/${action}`,
    summary: action === 'pause' ? 'Pause an endpoint' : 'Resume an endpoint',
    about:
      action === 'pause'
        ? 'Stops sending. Events stay in the log and are sent after the endpoint is resumed.'
        : 'Continues at the position where the endpoint was paused.',
    params: endpointParam,
    body: noBody,
    answers: { 200: oneEndpoint },
  })),
  {
    ...writes,
    id: 'rotateEndpointSecret',
    path: '/v1/webhooks/endpoints/{id}/rotate-secret',
    summary: 'Rotate the signing secret of an endpoint',
    about: 'Messages are signed with both secrets for 24 hours.',
    params: endpointParam,
    body: noBody,
    answers: { 200: secretOnce },
  },
  {
    ...writes,
    id: 'testEndpoint',
    path: '/v1/webhooks/endpoints/{id}/test',
    summary: 'Send a test message to an endpoint',
    about:
      'Sends a trace.batch with one sample event that matches the filters of the endpoint, signed with its secret. The ' +
      'message has "test": true and the sequence 0, and does not advance the sequence. A paused endpoint answers 409.',
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
    summary: 'Replay a range of events',
    about:
      'Moves the endpoint back to the start of the range. New events wait until the range is sent. Batches get new ids and ' +
      'sequence numbers.',
    params: endpointParam,
    body: { schema: model.replayBody, example: { from: 0 } },
    answers: {
      202: {
        description: 'The replay has started.',
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
    answers: { 200: { description: 'Deleted.', schema: model.okModel, example: { ok: true } } },
  },
]

export const webhookOperations: Operation[] = [...deliveries, ...endpoints]
