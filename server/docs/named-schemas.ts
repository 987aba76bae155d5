/** The schemas that OpenAPI names, and the reference to one wherever an operation holds its schema. */
import type { Schema } from '../http/validate.ts'
import { eventModel } from '../ingest/model.ts'
import { sessionModel } from '../api/sessions/model.ts'
import { toolModel, toolViewModel } from '../api/tools/model.ts'
import { auditEntryModel } from './audit-model.ts'
import { delivery, endpoint } from './webhooks-model.ts'

type Json = { [member: string]: unknown }

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
export function namedSchemas(): Json {
  return Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, inside(plain(schema))]))
}

/** A schema for the document: without the library's own symbols, and naming what has a name. */
export function referring(schema: Schema): Json {
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
