/** Flattens a schema into the rows of a table: which members there are, of what type, and what they mean. */
import type { Schema } from '../http/validate.ts'

export interface SchemaRow {
  name: string // dotted; [] for the items of a list
  type: string
  required: boolean
  description: string
}

const depthMax = 4

export function schemaRows(schema: Schema, prefix = '', depth = 0): SchemaRow[] {
  const inner = members(schema)
  if (depth >= depthMax) return []
  if (inner.type === 'array' && inner.items !== undefined) {
    return schemaRows(inner.items, `${prefix}[]`, depth)
  }
  return Object.entries(inner.properties ?? {}).flatMap(([name, member]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`
    const row = {
      name: path,
      type: typeText(member),
      required: inner.required?.includes(name) === true,
      description: descriptionOf(member),
    }
    return [row, ...schemaRows(member, path, depth + 1)]
  })
}

/** Of a choice between one thing and null: the thing. */
function members(schema: Schema): Schema {
  const others = schema.anyOf?.filter(({ type }) => type !== 'null') ?? []
  return others.length === 1 && others[0] !== undefined ? others[0] : schema
}

export function typeText(schema: Schema): string {
  const { anyOf, type, items, const: only, maxLength, minimum, maximum, maxItems } = schema
  if (anyOf !== undefined) return anyOf.map(typeText).join(' | ')
  if (only !== undefined) return JSON.stringify(only)
  if (type === 'array') {
    const most = maxItems === undefined ? '' : `, at most ${maxItems.toLocaleString('en-GB')}`
    return `list of ${items === undefined ? 'anything' : typeText(items)}${most}`
  }
  if (maxLength !== undefined) return `${type}, at most ${maxLength.toLocaleString('en-GB')} characters`
  if (minimum !== undefined && maximum !== undefined && maximum < 1e9)
    return `${type}, ${minimum} to ${maximum}`
  return type ?? 'anything'
}

function descriptionOf(schema: Schema): string {
  return (
    schema.description ??
    schema.anyOf?.find(({ description }) => description !== undefined)?.description ??
    ''
  )
}
