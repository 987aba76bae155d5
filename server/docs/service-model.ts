/** The reference of OpenTelemetry, metrics, limits, health and the audit export. */
import { t } from 'elysia'
import { integer } from '../http/field-models.ts'
import { publishedLimits } from '../limits.ts'
import { exploreOperation } from './explore-model.ts'
import { metricsModel } from '../api/metrics/routes.ts'
import { requestsModel } from '../api/requests/routes.ts'
import { exampleTime, since, siteIds, until, type Operation } from './operation-model.ts'

const limitsModel = t.Object({
  rateLimits: t.Object({ gateway: t.String(), ingest: t.String() }, { examples: ['1200/m', 'off'] }),
  ...Object.fromEntries(Object.entries(publishedLimits).map(([name, value]) => [name, limitModel(value)])),
})

function limitModel(value: unknown) {
  if (typeof value === 'boolean') return t.Boolean()
  return Array.isArray(value) ? t.Array(t.String()) : integer({ minimum: 1 })
}

const checkModel = t.Object({ name: t.String(), ok: t.Boolean(), detail: t.String() })

const otlpAbout =
  'Set OTEL_EXPORTER_OTLP_ENDPOINT to the address of this server and OTEL_EXPORTER_OTLP_HEADERS to ' +
  'authorization=Bearer%20<ingest key>. Accepts protobuf and JSON, and content-encoding gzip, up to 64 MiB after ' +
  'decompression. Errors are google.rpc.Status in the encoding of the request. '

const otlpResource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop-acme' } }] }

const otlpOperation = (
  operation: Pick<Operation, 'id' | 'path' | 'summary' | 'about'>,
  list: string,
  rejected: string,
  example: unknown,
): Operation => ({
  method: 'post',
  tag: 'OpenTelemetry',
  key: 'ingest',
  errorForm: 'rpc',
  ...operation,
  body: {
    schema: t.Object({ [list]: t.Array(t.Unknown()) }),
    example: { [list]: [example] },
    otherTypes: ['application/x-protobuf'],
  },
  answers: {
    200: {
      description: 'On disk. `partialSuccess` is set when some items were rejected; do not send them again.',
      schema: t.Object({
        partialSuccess: t.Optional(t.Object({ [rejected]: t.String(), errorMessage: t.String() })),
      }),
      example: {},
    },
  },
})

const rpcMessage = t.Object({
  jsonrpc: t.Literal('2.0'),
  id: t.Optional(t.Union([t.String(), integer()])),
  method: t.String(),
  params: t.Optional(t.Object({})),
})
const rpcError = t.Object({
  jsonrpc: t.Literal('2.0'),
  id: t.Optional(t.Union([t.String(), integer()])),
  error: t.Object({ code: integer(), message: t.String(), data: t.Optional(t.Unknown()) }),
})

export const mcpOperations: Operation[] = [
  {
    id: 'postMcp',
    method: 'post',
    path: '/mcp',
    tag: 'Assistants',
    summary: 'Ask with the Model Context Protocol',
    about:
      'One JSON-RPC message per request, in the revisions 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26 and 2024-11-05 of the protocol, without ' +
      'sessions. The scopes of the key decide which of the ten tools tools/list has; all of them only read. Every answer ' +
      'has its filter, range, exact count, whether it is complete, and a link to the dashboard. Text of events is only in ' +
      'fields named untrusted. The first question after a pause of 30 minutes writes an audit entry.',
    key: 'secret',
    body: {
      schema: rpcMessage,
      example: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'count', arguments: { last: '24h' } },
      },
    },
    answers: {
      200: {
        description: 'The result, or an error of the method.',
        schema: t.Object({
          jsonrpc: t.Literal('2.0'),
          id: t.Union([t.String(), integer()]),
          result: t.Optional(t.Object({})),
          error: t.Optional(rpcError.properties.error),
        }),
        example: { jsonrpc: '2.0', id: 1, result: { content: [], structuredContent: { count: 1 } } },
      },
      202: { description: 'A notification, which has no answer.' },
      400: { description: 'The message, its headers or its revision are not accepted.', schema: rpcError },
      404: { description: 'Revision 2026-07-28 has no such method.', schema: rpcError },
    },
    errors: ['not_acceptable'],
  },
]

export const otlpOperations: Operation[] = [
  otlpOperation(
    {
      id: 'postSpans',
      path: '/v1/traces',
      summary: 'Send OpenTelemetry spans',
      about:
        otlpAbout +
        'Spans of tools, agents, memory and guards become events with the id traceId:spanId. Other spans are counted.',
    },
    'resourceSpans',
    'rejectedSpans',
    {
      resource: otlpResource,
      scopeSpans: [
        {
          spans: [
            {
              traceId: '5b8efff798038103d269b633813fc60c',
              spanId: 'eee19b7ec3c1b174',
              name: 'execute_tool search',
              attributes: [
                { key: 'gen_ai.operation.name', value: { stringValue: 'execute_tool' } },
                { key: 'gen_ai.tool.name', value: { stringValue: 'search' } },
              ],
            },
          ],
        },
      ],
    },
  ),
  otlpOperation(
    {
      id: 'postLogRecords',
      path: '/v1/logs',
      summary: 'Send OpenTelemetry log records',
      about: `${otlpAbout}Records of Claude Code and Codex become events. Other records are counted.`,
    },
    'resourceLogs',
    'rejectedLogRecords',
    {
      resource: otlpResource,
      scopeLogs: [
        {
          logRecords: [
            {
              eventName: 'claude_code.tool_result',
              attributes: [
                { key: 'session.id', value: { stringValue: 'sess_1' } },
                { key: 'tool_name', value: { stringValue: 'Bash' } },
              ],
            },
          ],
        },
      ],
    },
  ),
  otlpOperation(
    {
      id: 'postOtlpMetrics',
      path: '/v1/metrics',
      summary: 'Refuse OpenTelemetry metrics',
      about: `${otlpAbout}Metrics are not stored: every data point is rejected with a 200, so that SDKs do not retry.`,
    },
    'resourceMetrics',
    'rejectedDataPoints',
    { resource: otlpResource, scopeMetrics: [] },
  ),
]

export const serviceOperations: Operation[] = [
  {
    id: 'getMetrics',
    method: 'get',
    path: '/v1/metrics',
    tag: 'Metrics',
    summary: 'Get event counts',
    about:
      'Counts by type, outcome and hour of all events that were accepted and not erased. Exact, including the current hour.',
    key: 'secret',
    scope: 'metrics:read',
    query: {
      since: { ...since, description: 'From this hour. Default: the last 30 days.' },
      until: { ...until, description: 'Before this hour.' },
      siteId: siteIds,
    },
    answers: {
      200: {
        description: 'The counts.',
        schema: metricsModel,
        example: {
          since: '2026-06-01T00:00:00.000Z',
          until: null,
          total: 1,
          byType: { 'authz.evaluated': 1 },
          byOutcome: { blocked: 1 },
          byHour: [{ hour: exampleTime, count: 1 }],
          rows: [
            {
              orgId: 'org_example',
              siteId: 'shop-acme',
              bucketStart: exampleTime,
              type: 'authz.evaluated',
              outcome: 'blocked',
              count: 1,
            },
          ],
        },
      },
    },
  },
  {
    id: 'getRequests',
    method: 'get',
    path: '/v1/requests',
    tag: 'Metrics',
    summary: 'Get request counts of access logs',
    about:
      'Requests by agents, people and other programs in the access logs that were imported or watched, by hour and site. Exact.',
    key: 'secret',
    scope: 'metrics:read',
    query: {
      since: { ...since, description: 'From this hour. Default: the last 30 days.' },
      until: { ...until, description: 'Before this hour.' },
      siteId: siteIds,
    },
    answers: {
      200: {
        description: 'The counts.',
        schema: requestsModel,
        example: {
          since: '2026-06-01T00:00:00.000Z',
          until: null,
          byKind: {
            agent: { requests: 3_241, bytes: 41_300_512 },
            person: { requests: 10_870, bytes: 260_114_002 },
            asset: { requests: 52_019, bytes: 1_204_881_920 },
            bot: { requests: 2_114, bytes: 30_412_888 },
          },
          byHour: [{ hour: exampleTime, agent: 3_241, person: 10_870, asset: 52_019, bot: 2_114 }],
          bySite: [{ siteId: 'shop-acme', agent: 3_241, person: 10_870, asset: 52_019, bot: 2_114 }],
        },
      },
    },
  },
  exploreOperation,
  {
    id: 'getLimits',
    method: 'get',
    path: '/v1/limits',
    tag: 'Service',
    summary: 'Get the limits of ingest',
    key: 'none',
    answers: {
      200: {
        description: 'The limits.',
        schema: limitsModel,
        example: { ...publishedLimits, rateLimits: { gateway: '1200/m', ingest: 'off' } },
      },
    },
  },
  {
    id: 'getHealth',
    method: 'get',
    path: '/healthz',
    tag: 'Service',
    summary: 'Check that the process responds',
    key: 'none',
    answers: {
      200: {
        description: 'The process responds.',
        schema: t.Object({ status: t.Literal('ok'), version: t.String() }),
        example: { status: 'ok', version: '1.0.0' },
      },
    },
  },
  {
    id: 'getReadiness',
    method: 'get',
    path: '/readyz',
    tag: 'Service',
    summary: 'Check that the server is ready',
    key: 'none',
    answers: {
      200: {
        description: 'All checks pass.',
        schema: t.Object({ status: t.Literal('ready'), checks: t.Array(checkModel) }),
        example: { status: 'ready', checks: [{ name: 'store', ok: true, detail: 'writable' }] },
      },
    },
    errors: ['not_ready'],
  },
]

const texts = t.Optional(t.Union([t.String(), t.Array(t.String()), t.Null()]))
const time = t.Optional(t.Union([t.String({ examples: ['2026-06-23T12:00:00Z'] }), t.Null()]))

const bodyModel = t.Object(
  {
    format: t.Optional(t.Union([t.Literal('json'), t.Literal('csv')])),
    since: time,
    until: time,
    actor: texts,
    action: texts,
    target: texts,
    q: texts,
    raw: t.Optional(t.Boolean({ description: 'For csv: disables the escaping of formulas.' })),
  },
  { additionalProperties: false },
)

export const auditEntryModel = t.Object({
  id: t.String(),
  orgId: t.String(),
  actor: t.String(),
  action: t.String(),
  target: t.String(),
  metadata: t.Object({}, { additionalProperties: true }),
  occurredAt: t.String(),
})

const headModel = t.Object({
  orgId: t.String(),
  count: integer({ minimum: 0 }),
  hash: t.String(),
  at: t.String(),
  key: t.String(),
  signature: t.String(),
})

export const auditOperations: Operation[] = [
  {
    id: 'exportAudit',
    method: 'post',
    path: '/v1/audit/export',
    tag: 'Audit',
    summary: 'Export the audit log',
    about: 'Newest first, including the entry for this export. An empty body exports everything as JSON.',
    key: 'secret',
    scope: 'audit:read',
    body: { schema: bodyModel, example: { format: 'json', since: '2026-06-01' }, optional: true },
    answers: {
      200: [
        {
          description: 'The entries and the signed head of their chain.',
          schema: t.Object({
            entries: t.Array(auditEntryModel),
            count: integer({ minimum: 0 }),
            head: headModel,
          }),
          example: {
            entries: [
              {
                id: 'aud_example',
                orgId: 'org_example',
                actor: 'key:key_example',
                action: 'audit.exported',
                target: 'org_example',
                metadata: { format: 'json' },
                occurredAt: exampleTime,
              },
            ],
            count: 1,
            head: {
              orgId: 'org_example',
              count: 1,
              hash: '0'.repeat(64),
              at: exampleTime,
              key: 'base64url',
              signature: 'base64url',
            },
          },
        },
        { description: 'With format csv, an attachment with the same columns.', type: 'text/csv' },
      ],
    },
  },
]
