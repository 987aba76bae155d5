/** A JSON Schema as a table: its fields flattened into rows with type, required, limits and description. */
import { Text } from '../../components/text.tsx'
import type { Json, JsonObject } from '../../api/registry-api.ts'

const choicesMax = 12

/** The table of a schema. */
export function SchemaView({
  title,
  schema,
  none: emptyText,
}: {
  title: string
  schema: Json | undefined
  none: string
}) {
  const { rows, more: hasMore } = schemaTable(schema)
  return (
    <section class="panel schema-view">
      <h3>{title}</h3>
      {schema == null && <p class="muted">{emptyText}</p>}
      {schema != null && rows.length === 0 && (
        <p>
          <Text value={typeOf(schema)} max={80} /> <span class="muted">without properties</span>
        </p>
      )}
      {rows.length > 0 && (
        <div class="schema-scroll" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col">Description</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => (
                <Member key={index} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {hasMore && (
        <p class="muted">Not all fields are shown. The full descriptor is at the end of this page.</p>
      )}
    </section>
  )
}

function Member({ row }: { row: SchemaRow }) {
  return (
    <tr>
      <th scope="row" class={`depth-${Math.min(row.depth, 6)}`}>
        <Text value={row.name} max={48} mono />
      </th>
      <td>
        <Text value={row.type} max={48} />
        {row.required && <b class="required"> required</b>}
      </td>
      <td>
        {row.description !== '' && (
          <p>
            <Text value={row.description.slice(0, 1_000)} multiline />
          </p>
        )}
        {row.limits.length > 0 && (
          <p class="muted">
            <Text value={row.limits.join(', ')} max={200} />
          </p>
        )}
        {row.choices.length > 0 && <Choices list={row.choices} />}
      </td>
    </tr>
  )
}

function Choices({ list }: { list: string[] }) {
  return (
    <p class="choices-line">
      <span class="muted">one of </span>
      {list.slice(0, choicesMax).map((choice) => (
        <code key={choice}>
          <Text value={choice} max={40} />
        </code>
      ))}
      {list.length > choicesMax && <span class="muted"> and {list.length - choicesMax} more</span>}
    </p>
  )
}

interface SchemaRow {
  name: string // of the field
  depth: number
  type: string // "string", "array of string", "one of 3 forms"
  required: boolean
  description: string
  limits: string[] // "1 to 100", "default 30", "at most 200 characters"
  choices: string[] // an enumeration
}

interface SchemaTable {
  rows: SchemaRow[]
  more: boolean // some fields are not shown
}

const rowsMax = 200
const depthMax = 6

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The label of a schema's type. */
export function typeOf(schema: Json | undefined, depth = 0): string {
  if (schema === true || schema === undefined) return 'any'
  if (schema === false) return 'never'
  if (!isObject(schema) || depth > depthMax) return 'any'
  const { type, items } = schema
  if (typeof schema['$ref'] === 'string') return schema['$ref'].split('/').at(-1) || 'any'
  if (Array.isArray(schema['enum']) && type === undefined) return 'enum'
  if (schema['const'] !== undefined) return `constant ${JSON.stringify(schema['const'])}`
  if (type === 'array') return items === undefined ? 'array' : `array of ${typeOf(items, depth + 1)}`
  if (typeof type === 'string') return type
  if (Array.isArray(type)) return type.map((typeName) => `${typeName}`).join(' or ')
  for (const member of ['anyOf', 'oneOf', 'allOf']) {
    const forms = schema[member]
    if (!Array.isArray(forms) || forms.length === 0) continue
    const names = [...new Set(forms.map((form) => typeOf(form, depth + 1)))]
    return names.length <= 3
      ? names.join(member === 'allOf' ? ' and ' : ' or ')
      : `one of ${forms.length} forms`
  }
  return isObject(schema['properties']) ? 'object' : 'any'
}

function rangeOf(schema: JsonObject, low: string, high: string, unit: string): string[] {
  const min = schema[low]
  const max = schema[high]
  const end = unit === '' ? '' : ` ${unit}`
  if (typeof min === 'number' && typeof max === 'number') return [`${min} to ${max}${end}`]
  if (typeof min === 'number') return [`at least ${min}${end}`]
  return typeof max === 'number' ? [`at most ${max}${end}`] : []
}

function limitsOf(schema: JsonObject): string[] {
  const { pattern, format, default: standard } = schema
  return [
    ...rangeOf(schema, 'minimum', 'maximum', ''),
    ...rangeOf(schema, 'exclusiveMinimum', 'exclusiveMaximum', 'exclusive'),
    ...rangeOf(schema, 'minLength', 'maxLength', 'characters'),
    ...rangeOf(schema, 'minItems', 'maxItems', 'items'),
    ...(typeof format === 'string' ? [`format ${format}`] : []),
    ...(typeof pattern === 'string' ? [`matches ${pattern}`] : []),
    ...(standard === undefined ? [] : [`default ${JSON.stringify(standard)}`]),
  ]
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The fields of an object schema, nested fields below their parent. */
export function schemaTable(schema: Json | undefined): SchemaTable {
  const rows: SchemaRow[] = []
  let hasMore = false
  const walk = (subschema: Json | undefined, depth: number): void => {
    if (!isObject(subschema) || depth > depthMax) return
    const required = Array.isArray(subschema['required']) ? subschema['required'] : []
    const members = isObject(subschema['properties']) ? Object.entries(subschema['properties']) : []
    for (const [name, inner] of members) {
      if (rows.length >= rowsMax) {
        hasMore = true
        return
      }
      const field = isObject(inner) ? inner : {}
      const items = isObject(field['items']) ? field['items'] : {}
      const choices = Array.isArray(field['enum']) ? field['enum'] : items['enum']
      rows.push({
        name,
        depth,
        type: typeOf(inner),
        required: required.includes(name),
        description: typeof field['description'] === 'string' ? field['description'] : '',
        limits: limitsOf(field),
        choices: Array.isArray(choices) ? choices.map(textOf) : [],
      })
      walk(field['type'] === 'array' ? field['items'] : field, depth + 1)
    }
    for (const member of ['anyOf', 'oneOf', 'allOf']) {
      const forms = subschema[member]
      if (Array.isArray(forms)) for (const form of forms) walk(form, depth + (members.length > 0 ? 1 : 0))
    }
  }
  walk(schema, 0)
  return { rows, more: hasMore }
}
