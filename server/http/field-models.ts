/**
 * Parts of the models of requests and responses. Apart from `validate.ts`, because commands check input without loading
 * Elysia.
 */
import { t, type TSchema } from 'elysia'

/** Elysia's own `t.Integer` also accepts numbers in strings, which the API rejects. */
interface IntegerOptions {
  minimum?: number
  maximum?: number
  default?: number
  description?: string
}

/** The key under which TypeBox stores the kind of a schema. */
const kind = Symbol.for('TypeBox.Kind')

export const integer = (options: IntegerOptions = {}) =>
  t.Unsafe<number>({ [kind]: 'Integer', type: 'integer', ...options })

export const nullable = <S extends TSchema>(schema: S) => t.Union([schema, t.Null()])

/** May be omitted or null. */
export const optional = <S extends TSchema>(schema: S) => t.Optional(nullable(schema))

/** A time in a response. */
export const time = (description?: string) =>
  t.String({ ...(description === undefined ? {} : { description }), examples: ['2026-06-23T12:00:00.000Z'] })
