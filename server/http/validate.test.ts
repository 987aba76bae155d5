/** Our validator agrees with TypeBox on validity, and reports the path and code of every problem. */
import { expect, test } from 'bun:test'
import { getSchemaValidator, t } from 'elysia'
import fc from 'fast-check'
import type { Issue } from '../errors.ts'
import { memoryBodyModel, toolsBodyModel } from '../api/registry/model.ts'
import { integer, optional } from './field-models.ts'
import { checkSchema, type Schema } from './validate.ts'

const issuesOf = (schema: Schema, value: unknown): [string, string][] => {
  const issues: Issue[] = []
  checkSchema(schema, value, issues)
  return issues.map(({ path, code }) => [path, code])
}

const shape = t.Object({
  name: t.String({ minLength: 1, maxLength: 3 }),
  kind: t.Union([t.Literal('a'), t.Literal('b')]),
  count: optional(integer({ minimum: 0, maximum: 9 })),
  list: t.Optional(t.Array(t.Number(), { maxItems: 2 })),
  inner: t.Optional(t.Object({ code: t.String({ pattern: '^[a-z]+$' }) }, { additionalProperties: false })),
  counts: t.Optional(t.Record(t.String(), integer())),
})
const right = {
  name: 'abc',
  kind: 'a',
  count: null,
  list: [1.5],
  inner: { code: 'x' },
  counts: { a: 1 },
  more: 1,
}

test('reports problems with path and code', () => {
  expect(issuesOf(shape, right)).toEqual([])
  const cases: [object, string, string][] = [
    [{ name: undefined }, 'name', 'wrong_type'],
    [{ name: '' }, 'name', 'wrong_format'],
    [{ name: 'abcd' }, 'name', 'too_long'],
    [{ kind: 'c' }, 'kind', 'wrong_format'],
    [{ count: 10 }, 'count', 'wrong_format'],
    [{ count: 1.5 }, 'count', 'wrong_type'],
    [{ count: '1' }, 'count', 'wrong_type'],
    [{ list: [1, 'x'] }, 'list.1', 'wrong_type'],
    [{ list: [1, 2, 3] }, 'list', 'too_many'],
    [{ inner: { code: 'A' } }, 'inner.code', 'wrong_format'],
    [{ inner: {} }, 'inner.code', 'required'],
    [{ inner: { code: 'a', more: 1 } }, 'inner.more', 'unknown'],
    [{ counts: { a: 'x' } }, 'counts.a', 'wrong_type'],
  ]
  for (const [change, path, code] of cases)
    expect(issuesOf(shape, { ...right, ...change })).toEqual([[path, code]])
  const { name: _, ...nameless } = right
  expect(issuesOf(shape, nameless)).toEqual([['name', 'required']])
  for (const value of [null, [], 'x', 1, undefined])
    expect(issuesOf(shape, value)).toEqual([['', 'wrong_type']])
})

test('reports at most the given number of issues and truncates hostile names', () => {
  const manyTexts = Array.from({ length: 100 }, () => 'x')
  const issues: Issue[] = []
  checkSchema(t.Array(t.Number()), manyTexts, issues, { issuesMax: 7 })
  expect(issues.length).toBe(7)
  const strict = t.Object({}, { additionalProperties: false })
  expect(issuesOf(strict, { ['n'.repeat(500)]: 1 })[0]![0].length).toBeLessThan(70)
})

test('agrees with TypeBox on valid and mutated tools and site memory', () => {
  const leaf = fc.oneof(
    fc.string(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
  )
  const value = fc.oneof(
    leaf,
    fc.array(leaf, { maxLength: 2 }),
    fc.dictionary(fc.string(), leaf, { maxKeys: 2 }),
  )
  const members = {
    title: value,
    description: value,
    group: value,
    page: value,
    inputSchema: value,
    tokens: value,
    enabled: value,
  }
  const tool = fc.record(
    { name: fc.oneof(fc.string({ maxLength: 140 }), value), ...members },
    { requiredKeys: [] },
  )
  const tools = fc.record(
    { siteId: fc.oneof(fc.string(), value), tools: fc.oneof(fc.array(tool, { maxLength: 3 }), value) },
    { requiredKeys: [] },
  )
  const memory = fc.record(
    { siteId: fc.oneof(fc.string(), value), snapshot: value, score: value },
    { requiredKeys: [] },
  )
  for (const [schema, bodies] of [
    [toolsBodyModel, tools],
    [memoryBodyModel, memory],
  ] as const) {
    const typeBox = getSchemaValidator(schema, { normalize: false })
    fc.assert(
      fc.property(bodies as fc.Arbitrary<unknown>, (sentValue) => {
        const body: unknown = JSON.parse(JSON.stringify(sentValue))
        expect(issuesOf(schema, body).length === 0).toBe(typeBox.Check(body))
      }),
      { numRuns: 1_000 },
    )
  }
})
