/** Builds the OpenAPI 3.1 document from the operations, with the same schemas that validate requests. */
import { errorStatus, type ErrorCode } from '../errors.ts'
import { errorsOf, statusIn, type Answer, type Operation, type Parameter } from './operation-model.ts'
import { webhookMessages, type WebhookMessage } from './webhook-messages-model.ts'
import { delivery, endpoint } from './webhooks-model.ts'
import { eventModel } from '../ingest/model.ts'
import { sessionModel } from '../api/sessions/routes.ts'
import { toolModel, toolViewModel } from '../api/registry/model.ts'
import {
  auditEntryModel,
  auditOperations,
  mcpOperations,
  otlpOperations,
  serviceOperations,
} from './service-model.ts'
import { ingestOperations, registryOperations, sessionOperations, traceOperations } from './gateway-model.ts'
import { alertOperations } from './alert-operations-model.ts'
import { webhookOperations } from './webhook-operations-model.ts'
import type { Schema } from '../http/validate.ts'

type Json = { [field: string]: unknown }

/** The operations of the public API in the order of the reference. A test compares them with the routes. */
export const operations: readonly Operation[] = [
  ...ingestOperations,
  ...otlpOperations,
  ...traceOperations,
  ...sessionOperations,
  ...registryOperations,
  ...serviceOperations,
  ...auditOperations,
  ...mcpOperations,
  ...webhookOperations,
  ...alertOperations,
]

export const documentText = [
  'Sightglass stores trace events of AI agents and returns them exactly as they were sent.',
  'Send the key as "authorization: Bearer <key>". An ingest key writes to /v1/sdk/* and sends OpenTelemetry data; a secret key does everything else. ' +
    'Times are RFC 3339. Times made by the server are UTC with milliseconds. Unknown query parameters are rejected. ' +
    'Every response has the header x-request-id. Every error has the same shape and a stable code.',
].join('\n\n')

export function openApiDocument(version: string, basePath = ''): Json {
  const paths: { [path: string]: Json } = {}
  for (const operation of operations) {
    const path = (paths[operation.path] ??= {})
    path[operation.method] = operationObject(operation)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sightglass',
      version,
      description: documentText,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    webhooks: Object.fromEntries(
      webhookMessages.map((message) => [message.type, { post: webhookObject(message) }]),
    ),
    components: {
      securitySchemes: {
        ingest: { type: 'http', scheme: 'bearer', description: 'An ingest key, agtx_ik_…' },
        secret: { type: 'http', scheme: 'bearer', description: 'A secret key, agtx_sk_…' },
      },
      schemas: { ...namedSchemas(), Error: errorSchema, RpcStatus: rpcStatusSchema },
    },
  }
}

function operationObject(operation: Operation): Json {
  const { id, tag, summary, about: description, key, scope, body, params = {}, query = {} } = operation
  const parameters = [
    ...Object.entries(params).map(([name, param]) => ({
      name,
      in: 'path',
      required: true,
      description: param.description,
      schema: { type: 'string' },
      example: param.example,
    })),
    ...Object.entries(query).map(([name, parameter]) => queryParameter(name, parameter)),
  ]
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: key === 'none' ? [] : [{ [key]: [] }],
    ...(scope === undefined ? {} : { 'x-scope': scope }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: requestBody(body) }),
    responses: { ...failures(operation), ...successes(operation) }, // which may have errors of another form
  }
}

const signatureHeaders: { [name: string]: string } = {
  'webhook-id': 'The delivery id. It is the same on every attempt.',
  'webhook-timestamp': 'The time this attempt was signed, in seconds since 1970.',
  'webhook-signature':
    'v1 and the base64 HMAC-SHA256 of id.timestamp.body (Standard Webhooks). Two signatures while a secret rotates.',
}

/** A webhook message as an operation of the receiver. */
function webhookObject({ type, summary, about: description, schema, examples }: WebhookMessage): Json {
  const namedExamples = examples.map((value, index) => [`example${index + 1}`, { value }])
  return {
    operationId: `receive_${type.replace('.', '_')}`,
    tags: ['Webhooks'],
    summary,
    description,
    parameters: Object.entries(signatureHeaders).map(([name, headerDescription]) => ({
      name,
      in: 'header',
      required: true,
      description: headerDescription,
      schema: { type: 'string' },
    })),
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: referring(schema), examples: Object.fromEntries(namedExamples) },
      },
    },
    responses: { '2XX': { description: 'Delivered. Any other status is retried; 410 pauses the endpoint.' } },
  }
}

function queryParameter(name: string, parameter: Parameter): Json {
  const { schema, description, repeats, required, example } = parameter
  const shape =
    repeats === true ? { type: 'array', items: referring(schema), maxItems: 100 } : referring(schema)
  return {
    name,
    in: 'query',
    description,
    ...(required === true ? { required } : {}),
    schema: shape,
    ...(repeats === true ? { style: 'form', explode: true } : {}),
    ...(example === undefined ? {} : { example: repeats === true ? [example] : example }),
  }
}

function requestBody(body: NonNullable<Operation['body']>): Json {
  const { schema, example, optional, type = 'application/json', otherTypes = [] } = body
  const otherContent = otherTypes.map((type) => [type, { schema: { type: 'string' } }])
  return {
    required: optional !== true,
    content: { [type]: { schema: referring(schema), example }, ...Object.fromEntries(otherContent) },
  }
}

function successes({ answers }: Operation): Json {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      const answerList: Answer[] = Array.isArray(answer) ? answer : [answer]
      const content = answerList.map(({ type = 'application/json', schema, example }) => [
        type,
        {
          schema: schema === undefined ? { type: 'string' } : referring(schema),
          ...(example === undefined ? {} : { example }),
        },
      ])
      const description = answerList.map((entry) => entry.description).join(' ')
      return [status, { description, content: Object.fromEntries(content) }]
    }),
  )
}

function failures(operation: Operation): Json {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of errorsOf(operation)) {
    const status = statusIn(operation, code)
    const codes = byStatus.get(status) ?? []
    byStatus.set(status, codes.includes(code) ? codes : [...codes, code])
  }
  const schema = { $ref: `#/components/schemas/${operation.errorForm === 'rpc' ? 'RpcStatus' : 'Error'}` }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      { description: codes.join(', '), content: { 'application/json': { schema } } },
    ]),
  )
}

const errorSchema: Json = {
  type: 'object',
  required: ['error', 'message', 'requestId'],
  properties: {
    error: { enum: Object.keys(errorStatus) },
    message: { type: 'string', description: 'A readable description of the error. The wording may change.' },
    reason: { type: 'string', description: 'The cause, where one code has several.' },
    hint: { type: 'string', description: 'What to do next.' },
    issues: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'message', 'code'],
        properties: {
          path: { type: 'string' },
          message: { type: 'string' },
          code: { type: 'string' },
          index: { type: 'integer' },
          id: { type: 'string' },
        },
      },
    },
    requestId: { type: 'string' },
  },
}

const rpcStatusSchema: Json = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { type: 'integer', description: 'A code of google.rpc.Code.' },
    message: { type: 'string', description: 'A readable description: what is wrong and what to do next.' },
  },
}

/** The schemas under `components`; operations refer to them by name. */
const componentSchemas: { [name: string]: Schema } = {
  Event: eventModel,
  Session: sessionModel,
  Tool: toolViewModel,
  ToolDescriptor: toolModel,
  Delivery: delivery,
  Endpoint: endpoint,
  AuditEntry: auditEntryModel,
}

/** Schemas are compared as text, because TypeBox copies the schemas it combines. */
const nameOf = new Map(
  Object.entries(componentSchemas).map(([name, schema]) => [JSON.stringify(schema), name]),
)

function namedSchemas(): Json {
  return Object.fromEntries(
    Object.entries(componentSchemas).map(([name, schema]) => [name, inside(plain(schema))]),
  )
}

/** The schema as plain JSON, with references in place of named schemas. */
function referring(schema: Schema): Json {
  return refer(plain(schema)) as Json
}

function refer(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const name = nameOf.get(JSON.stringify(value))
  return name === undefined ? inside(value) : { $ref: `#/components/schemas/${name}` }
}

function inside(value: object): unknown {
  if (Array.isArray(value)) return value.map(refer)
  return Object.fromEntries(Object.entries(value).map(([field, fieldValue]) => [field, refer(fieldValue)]))
}

function plain(schema: Schema): object {
  return JSON.parse(JSON.stringify(schema)) as object
}
