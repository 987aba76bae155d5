/** Checks a value against a schema as OpenAPI shows it, and says in our issues what is wrong and where. */
import { isLongerThan } from '../text/text.ts'
import { t, type TSchema } from 'elysia'
import type { Issue } from '../errors.ts'

/** The part of JSON Schema that our models use. */
export interface Schema {
  description?: string | undefined
  type?: string | undefined
  properties?: { [name: string]: Schema }
  required?: readonly string[] | undefined
  additionalProperties?: unknown // false, or a Schema
  patternProperties?: { [pattern: string]: Schema }
  items?: Schema
  anyOf?: readonly Schema[]
  const?: unknown
  pattern?: string | undefined
  minLength?: number | undefined
  maxLength?: number // code points
  minimum?: number | undefined
  maximum?: number | undefined
  minItems?: number | undefined
  maxItems?: number | undefined
}

/** Adds what is wrong to `issues`, at most `issuesMax` in all. A path is dotted, '' is the value itself. */
export function checkSchema(
  schema: Schema,
  value: unknown,
  issues: Issue[],
  { path = '', issuesMax = 20 }: { path?: string; issuesMax?: number } = {},
): void {
  if (issues.length >= issuesMax) return
  const add = (code: string, message: string): void => {
    if (issues.length < issuesMax) issues.push({ path, code, message })
  }
  if (schema.anyOf !== undefined) return checkAny(schema.anyOf, value, issues, { path, issuesMax })
  if (schema.const !== undefined) {
    if (value !== schema.const) add('wrong_format', `must be ${JSON.stringify(schema.const)}`)
    return
  }
  if (schema.type === undefined) return // anything
  if (!hasType(value, schema.type)) return add('wrong_type', `must be ${typeNames[schema.type]}`)
  if (typeof value === 'string') checkText(schema, value, add)
  else if (typeof value === 'number') checkNumber(schema, value, add)
  else if (Array.isArray(value)) checkItems(schema, value, issues, { path, issuesMax })
  else if (typeof value === 'object' && value !== null) {
    checkMembers(schema, value as { [name: string]: unknown }, issues, { path, issuesMax })
  }
}

interface Place {
  path: string
  issuesMax: number
}

type Add = (code: string, message: string) => void

const typeNames: { [type: string]: string } = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'an object',
}

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return typeof value === 'number' && Number.isFinite(value)
    case 'string':
    case 'boolean':
      return typeof value === type
    default:
      throw new Error(`invariant: schemas here have no type ${type}`)
  }
}

/** What the nearest alternative says: the first that has the value's type, else the first that is not null. */
function checkAny(schemas: readonly Schema[], value: unknown, issues: Issue[], place: Place): void {
  const fits = schemas.some((schema) => {
    const found: Issue[] = []
    checkSchema(schema, value, found)
    return found.length === 0
  })
  if (fits) return
  const ofType = schemas.find((schema) => schema.type !== undefined && hasType(value, schema.type))
  const nearest = ofType ?? schemas.find((schema) => schema.type !== 'null')
  if (nearest !== undefined) checkSchema(nearest, value, issues, place)
}

function checkText({ pattern, minLength = 0, maxLength = Infinity }: Schema, value: string, add: Add): void {
  if (isLongerThan(value, maxLength)) add('too_long', `must have at most ${maxLength} characters`)
  else if (minLength === 1 && value === '') add('wrong_format', 'must not be empty')
  else if (pattern !== undefined && !new RegExp(pattern, 'u').test(value))
    add('wrong_format', `must match ${pattern}`)
}

function checkNumber({ minimum = -Infinity, maximum = Infinity }: Schema, value: number, add: Add): void {
  if (value >= minimum && value <= maximum) return
  add(
    'wrong_format',
    maximum === Infinity ? `must be ${minimum} or more` : `must be ${minimum} to ${maximum}`,
  )
}

function checkItems(schema: Schema, value: unknown[], issues: Issue[], { path, issuesMax }: Place): void {
  const { items, minItems = 0, maxItems = Infinity } = schema
  if (value.length < minItems)
    issues.push({ path, code: 'required', message: `must have ${minItems} or more` })
  if (value.length > maxItems) {
    issues.push({ path, code: 'too_many', message: `must have at most ${maxItems}` })
    return
  }
  if (items === undefined) return
  value.forEach((item, index) =>
    checkSchema(items, item, issues, { path: join(path, String(index)), issuesMax }),
  )
}

function checkMembers(
  schema: Schema,
  value: { [name: string]: unknown },
  issues: Issue[],
  { path, issuesMax }: Place,
): void {
  const { properties = {}, required = [], additionalProperties, patternProperties } = schema
  for (const name of required) {
    if (!Object.hasOwn(value, name) && issues.length < issuesMax)
      issues.push({ path: join(path, name), code: 'required', message: 'is required' })
  }
  const rest = patternProperties === undefined ? additionalProperties : Object.values(patternProperties)[0]
  for (const name in value) {
    const known = Object.hasOwn(properties, name) ? properties[name] : rest
    if (known === false && issues.length < issuesMax)
      issues.push({ path: join(path, cut(name)), code: 'unknown', message: 'is not known here' })
    else if (typeof known === 'object' && known !== null)
      checkSchema(known, value[name], issues, { path: join(path, cut(name)), issuesMax })
  }
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

function cut(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name
}

/** Schema parts that several models use. Elysia's own `t.Integer` also takes numbers in texts, which we do not. */
interface IntegerOptions {
  minimum?: number
  maximum?: number
  default?: number
  description?: string
}

/** The name under which TypeBox knows what kind of schema it looks at. */
const kind = Symbol.for('TypeBox.Kind')

export const integer = (options: IntegerOptions = {}) =>
  t.Unsafe<number>({ [kind]: 'Integer', type: 'integer', ...options })

export const nullable = <S extends TSchema>(schema: S) => t.Union([schema, t.Null()])

/** May be left out, and may be null. */
export const optional = <S extends TSchema>(schema: S) => t.Optional(nullable(schema))

/** A time as we send it. */
export const time = (description?: string) =>
  t.String({ ...(description === undefined ? {} : { description }), examples: ['2026-06-23T12:00:00.000Z'] })
