/** A schema becomes rows with types and limits, and no schema breaks the page. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../../api/registry-api.ts'
import { schemaTable, typeOf } from './schema.tsx'

test('fields, nesting, arrays and limits become rows', () => {
  const schema: JsonObject = {
    type: 'object',
    required: ['query'],
    properties: {
      query: { type: 'string', description: 'Words', minLength: 1, maxLength: 200 },
      page: { type: 'integer', minimum: 1, default: 1 },
      sort: { type: 'string', enum: ['price', 'name'] },
      filters: { type: 'array', items: { type: 'object', properties: { field: { type: 'string' } } } },
      either: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
  }
  const { rows, more: hasMore } = schemaTable(schema)
  expect(hasMore).toBe(false)
  expect(rows.map(({ name, depth, type, required }) => [name, depth, type, required])).toEqual([
    ['query', 0, 'string', true],
    ['page', 0, 'integer', false],
    ['sort', 0, 'string', false],
    ['filters', 0, 'array of object', false],
    ['field', 1, 'string', false],
    ['either', 0, 'string or null', false],
  ])
  expect(rows[0]?.limits).toEqual(['1 to 200 characters'])
  expect(rows[1]?.limits).toEqual(['at least 1', 'default 1'])
  expect(rows[2]?.choices).toEqual(['price', 'name'])
})

test('labels of unusual types', () => {
  expect(typeOf({ type: 'constructor' })).toBe('constructor')
  expect(typeOf({ $ref: '#/definitions/Money' })).toBe('Money')
  expect(typeOf({ const: 3 })).toBe('constant 3')
  expect(typeOf({ oneOf: ['string', 'integer', 'number', 'boolean'].map((type) => ({ type })) })).toBe(
    'one of 4 forms',
  )
  expect(typeOf(false)).toBe('never')
})

test('every real tool has a row for each of its parameters', async () => {
  const real = new URL('../../../server/demo/tools.github.json', import.meta.url)
  const { tools } = (await Bun.file(real).json()) as { tools: { inputSchema: JsonObject }[] }
  for (const { inputSchema } of tools) {
    const names = Object.keys((inputSchema['properties'] ?? {}) as JsonObject)
    const shown = schemaTable(inputSchema).rows.filter((row) => row.depth === 0)
    expect(shown.map((row) => row.name)).toEqual(names)
    expect(shown.every((row) => row.type !== '')).toBe(true)
  }
})

test('law: any JSON value is a schema that can be shown', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (value, inner) => {
      const { rows } = schemaTable({
        properties: { a: value, b: { items: inner, enum: inner, type: 'array' } },
      } as Json)
      expect(rows.length).toBeGreaterThanOrEqual(2)
    }),
  )
})
