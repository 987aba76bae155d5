/** Schema parts that several models use. Elysia's own `t.Integer` also takes numbers in texts, which we do not. */
import { t, type TSchema } from 'elysia'

export interface IntegerOptions {
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
