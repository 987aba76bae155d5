/** Reads tables of the configuration file, such as `[[watch]]`, which their options get as JSON. */
import { UsageError } from '../errors.ts'

export interface OptionTable {
  /** Throws without a value when there is no default. */
  text(field: string, byDefault?: string): string
  /** Null without a value. */
  optional(field: string): string | null
  texts(field: string): string[]
  flag(field: string): boolean
}

/** Null for the text of a flag. `name` is that of the option. */
export function optionTables(text: string, name: string, fields: readonly string[]): OptionTable[] | null {
  const list = listOf(text)
  if (list === null) return null
  return list.map((table) => {
    if (typeof table !== 'object' || table === null)
      throw new UsageError(`${name} must have tables: [[${name}]]`)
    const unknown = Object.keys(table).find((field) => !fields.includes(field))
    if (unknown !== undefined)
      throw new UsageError(`[[${name}]] has no "${unknown}"; it has ${fields.join(', ')}`)
    const values = new Map<string, unknown>(Object.entries(table))
    return {
      optional(field) {
        return values.has(field) ? this.text(field) : null
      },
      text(field, byDefault) {
        const value = values.get(field) ?? byDefault
        if (typeof value === 'string' && value !== '') return value
        throw new UsageError(`[[${name}]] needs ${field} as a string`)
      },
      texts(field) {
        const value = values.get(field) ?? []
        if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
        throw new UsageError(`${field} of [[${name}]] must be a list of strings`)
      },
      flag: (field) => values.get(field) === true,
    }
  })
}

/** The text of a flag may also begin with a bracket, as in `[::1]:514`. */
function listOf(text: string): unknown[] | null {
  if (!text.startsWith('[')) return null
  try {
    return JSON.parse(text) as unknown[]
  } catch {
    return null
  }
}
