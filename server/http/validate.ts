/** Validates JSON bodies: against the schemas that OpenAPI publishes, or field by field. Every problem is an issue. */
import { isLongerThan } from '../text/text.ts'
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { shortName } from './request.ts'
import { readJsonObject } from './body.ts'

/** The subset of JSON Schema that the models use. */
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

/** Appends problems to `issues`, at most `issuesMax` in total. Paths are dotted; '' is the value itself. */
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
    checkFields(schema, value as { [name: string]: unknown }, issues, { path, issuesMax })
  }
}

interface Place {
  path: string
  issuesMax: number
}

type Add = (code: string, message: string) => void

const typeNames: { [type: string]: string } = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'a boolean',
  null: 'null',
  array: 'an array',
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

/**
 * Reports all values of an enumeration, otherwise the closest alternative's problems: the first with the value's type,
 * else the first that is not null.
 */
function checkAny(schemas: readonly Schema[], value: unknown, issues: Issue[], place: Place): void {
  const fits = schemas.some((schema) => {
    const schemaIssues: Issue[] = []
    checkSchema(schema, value, schemaIssues)
    return schemaIssues.length === 0
  })
  if (fits) return
  const constants = schemas.flatMap((schema) =>
    schema.const === undefined ? [] : [JSON.stringify(schema.const)],
  )
  if (
    constants.length > 1 &&
    schemas.every(({ const: constant, type }) => constant !== undefined || type === 'null')
  ) {
    const message = `must be one of ${constants.join(', ')}`
    if (issues.length < place.issuesMax) issues.push({ path: place.path, code: 'wrong_format', message })
    return
  }
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
    maximum === Infinity ? `must be at least ${minimum}` : `must be between ${minimum} and ${maximum}`,
  )
}

function checkItems(schema: Schema, value: unknown[], issues: Issue[], { path, issuesMax }: Place): void {
  const { items, minItems = 0, maxItems = Infinity } = schema
  if (value.length < minItems)
    issues.push({ path, code: 'required', message: `must have at least ${minItems} items` })
  if (value.length > maxItems) {
    issues.push({ path, code: 'too_many', message: `must have at most ${maxItems} items` })
    return
  }
  if (items === undefined) return
  value.forEach((item, index) =>
    checkSchema(items, item, issues, { path: join(path, String(index)), issuesMax }),
  )
}

function checkFields(
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
  const otherSchema =
    patternProperties === undefined ? additionalProperties : Object.values(patternProperties)[0]
  for (const name in value) {
    const fieldSchema = Object.hasOwn(properties, name) ? properties[name] : otherSchema
    if (fieldSchema === false && issues.length < issuesMax)
      issues.push({ path: join(path, shortName(name)), code: 'unknown', message: 'is not a known field' })
    else if (typeof fieldSchema === 'object' && fieldSchema !== null)
      checkSchema(fieldSchema, value[name], issues, { path: join(path, shortName(name)), issuesMax })
  }
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

interface Kinds {
  text: string
  flag: boolean
  number: number
  texts: string[]
  'text|null': string | null
}
type Kind = keyof Kinds
type Shape = { readonly [name: string]: Kind | `${Kind}?` }
type ValueOf<K> = K extends `${infer Base extends Kind}?`
  ? Kinds[Base] | undefined
  : K extends Kind
    ? Kinds[K]
    : never
type Fields<S extends Shape> = { [N in keyof S]: ValueOf<S[N]> }

const textCharsMax = 2_000
const textsMax = 1_000

/**
 * `?` marks a field that may be omitted or null; `text|null` distinguishes the two. Throws 400 `invalid_body` with one
 * issue per wrong field.
 */
export async function readFields<const S extends Shape>(request: Request, shape: S): Promise<Fields<S>> {
  const bytes = { bytesMax: limits.jsonBodyBytesMax }
  const body: { [name: string]: unknown } = await readJsonObject(request, bytes, { emptyIsObject: true })
  const issues: Issue[] = []
  const out: { [name: string]: unknown } = {}
  for (const [name, type] of Object.entries(shape)) {
    const optional = type.endsWith('?')
    const kind = (optional ? type.slice(0, -1) : type) as Kind
    const value = kind === 'text|null' ? body[name] : (body[name] ?? undefined)
    if (value !== undefined) {
      const problem = problemOf(kind, value)
      if (problem === null) out[name] = value
      else issues.push({ path: name, code: problem[0], message: `${name} ${problem[1]}` })
    } else if (!optional) issues.push({ path: name, code: 'required', message: `${name} is required` })
  }
  for (const name of Object.keys(body)) {
    if (Object.hasOwn(shape, name)) continue
    const path = name.slice(0, 60)
    issues.push({ path, code: 'unknown', message: `${path} is not a known field` })
  }
  if (issues.length > 0) throw new AppError('invalid_body', issues[0]!.message, { issues })
  return out as Fields<S>
}

/** A 400 that names the one wrong field. */
export function wrongField(path: string, message: string, code = 'wrong_format'): AppError {
  return new AppError('invalid_body', message, { issues: [{ path, message, code }] })
}

function problemOf(kind: Kind, value: unknown): [code: string, message: string] | null {
  switch (kind) {
    case 'text|null':
      return value === null ? null : problemOf('text', value)
    case 'text':
      if (typeof value !== 'string') return ['wrong_type', 'must be a string']
      return value.length > textCharsMax ? ['too_long', `must have at most ${textCharsMax} characters`] : null
    case 'flag':
      return typeof value === 'boolean' ? null : ['wrong_type', 'must be a boolean']
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? null : ['wrong_type', 'must be a number']
    case 'texts': {
      if (!Array.isArray(value) || value.length > textsMax)
        return ['wrong_type', 'must be an array of strings']
      const isText = (item: unknown) => typeof item === 'string' && item.length <= textCharsMax
      return value.every(isText) ? null : ['wrong_type', 'must be an array of strings']
    }
  }
}
