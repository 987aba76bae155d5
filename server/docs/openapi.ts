/** Makes the OpenAPI 3.1 document from the operations: the schemas in it are those that check bodies and answers. */
import { errorStatus, type ErrorCode } from '../errors.ts'
import { errorsOf, type Answer, type Operation, type Parameter } from './operation-model.ts'
import { operations } from './operations.ts'
import { webhookMessages, type WebhookMessage } from './webhook-messages-model.ts'
import { eventModel } from '../ingest/model.ts'
import { sessionModel } from '../api/sessions/model.ts'
import { toolModel, toolViewModel } from '../api/tools/model.ts'
import { auditEntryModel } from './service-model.ts'
import { delivery, endpoint } from './webhooks-model.ts'
import type { Schema } from '../http/validate.ts'

type Json = { [member: string]: unknown }

export const documentText = [
  'Sightglass takes trace events of AI agents, keeps them, and gives them back exactly as they were sent.',
  'Keys go as "authorization: Bearer <key>": an ingest key writes to /v1/sdk/*, a secret key reads everything else. ' +
    'Times are RFC 3339; those we make are UTC with milliseconds. Unknown query parameters are refused by name. ' +
    'Every answer has the header x-request-id, every error the same shape with a stable code.',
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
      schemas: { ...namedSchemas(), Error: errorSchema },
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
    responses: { ...successes(operation), ...failures(operation) },
  }
}

const signatureHeaders: { [name: string]: string } = {
  'webhook-id': 'The id of the delivery, the same on every attempt.',
  'webhook-timestamp': 'When this attempt was signed: seconds since 1970.',
  'webhook-signature':
    'v1 and the base64 HMAC-SHA256 of id.timestamp.body (Standard Webhooks), several while a secret rotates.',
}

/** A message that a receiver gets, as an operation of the receiver. */
function webhookObject({ type, summary, about: description, schema, examples }: WebhookMessage): Json {
  const named = examples.map((value, index) => [`example${index + 1}`, { value }])
  return {
    operationId: `receive_${type.replace('.', '_')}`,
    tags: ['Webhooks'],
    summary,
    description,
    parameters: Object.entries(signatureHeaders).map(([name, about]) => ({
      name,
      in: 'header',
      required: true,
      description: about,
      schema: { type: 'string' },
    })),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: referring(schema), examples: Object.fromEntries(named) } },
    },
    responses: { '2XX': { description: 'Delivered. Anything else is retried; 410 pauses the endpoint.' } },
  }
}

function queryParameter(name: string, { schema, description, repeats, example }: Parameter): Json {
  const shape =
    repeats === true ? { type: 'array', items: referring(schema), maxItems: 100 } : referring(schema)
  return {
    name,
    in: 'query',
    description,
    schema: shape,
    ...(repeats === true ? { style: 'form', explode: true } : {}),
    ...(example === undefined ? {} : { example: repeats === true ? [example] : example }),
  }
}

function requestBody({ schema, example, optional, otherTypes = [] }: NonNullable<Operation['body']>): Json {
  const others = otherTypes.map((type) => [type, { schema: { type: 'string' } }])
  return {
    required: optional !== true,
    content: { 'application/json': { schema: referring(schema), example }, ...Object.fromEntries(others) },
  }
}

function successes({ answers }: Operation): Json {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      const all: Answer[] = Array.isArray(answer) ? answer : [answer]
      const content = all.map(({ type = 'application/json', schema, example }) => [
        type,
        {
          schema: schema === undefined ? { type: 'string' } : referring(schema),
          ...(example === undefined ? {} : { example }),
        },
      ])
      const description = all.map((one) => one.description).join(' ')
      return [status, { description, content: Object.fromEntries(content) }]
    }),
  )
}

/** The errors of an operation by status, each with its codes. */
function failures(operation: Operation): Json {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of errorsOf(operation)) {
    const codes = byStatus.get(errorStatus[code]) ?? []
    byStatus.set(errorStatus[code], codes.includes(code) ? codes : [...codes, code])
  }
  const schema = { $ref: '#/components/schemas/Error' }
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
    message: { type: 'string', description: 'For people.' },
    reason: { type: 'string', description: 'Which of several causes.' },
    hint: { type: 'string', description: 'What to do about it.' },
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

/** The schemas that OpenAPI names, and the reference to one wherever an operation holds its schema. */
const named: { [name: string]: Schema } = {
  Event: eventModel,
  Session: sessionModel,
  Tool: toolViewModel,
  ToolDescriptor: toolModel,
  Delivery: delivery,
  Endpoint: endpoint,
  AuditEntry: auditEntryModel,
}

/** Equal text means the same schema: TypeBox copies what it is made of. */
const nameOf = new Map(Object.entries(named).map(([name, schema]) => [JSON.stringify(schema), name]))

/** The components of the document, each whole but for the others in it. */
function namedSchemas(): Json {
  return Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, inside(plain(schema))]))
}

/** A schema for the document: without the library's own symbols, and naming what has a name. */
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
  return Object.fromEntries(Object.entries(value).map(([member, each]) => [member, refer(each)]))
}

function plain(schema: Schema): object {
  return JSON.parse(JSON.stringify(schema)) as object
}
