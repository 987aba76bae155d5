/** Joining registry and calls keeps every tool and call, and adds up the tokens of a page. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ToolCalls } from '../../api/api.ts'
import type { Tool } from '../../api/registry-api.ts'
import { pageCosts, summaryOf, toolRows, toolFilterOf, filterTools } from './rows.ts'

const tool = (name: string, fields: Partial<Tool> = {}): Tool => ({
  siteId: 'shop',
  name,
  enabled: true,
  tokens: 100,
  tokensEstimated: false,
  version: 1,
  firstSeenAt: '',
  changedAt: '',
  removedAt: null,
  tool: { description: 'Does it.', page: '/cart' },
  ...fields,
})

const calls = (rows: ToolCalls['rows']): ToolCalls =>
  ({
    period: {},
    executed: { count: rows.reduce((sum, row) => sum + row.count, 0), before: 0 },
    rows,
    sitesLeftOut: 0,
  }) as unknown as ToolCalls
const call = (name: string | null, count: number, outcomes = {}, siteId = 'shop') => ({
  siteId,
  name,
  count,
  before: 0,
  outcomes,
  lastHour: null,
  took: null,
})

test('calls belong to the tool of their site; unregistered names are listed below', () => {
  const rows = toolRows(
    [tool('a'), tool('b')],
    calls([
      call('a', 3, { error: 1, success: 2 }),
      call('a', 9, {}, 'other'),
      call('gone', 2),
      call(null, 5),
    ]),
  )
  expect(
    rows.map(({ name, siteId, calls: n, errors, registered }) => [name, siteId, n, errors, registered]),
  ).toEqual([
    ['a', 'shop', 3, 1, true],
    ['b', 'shop', 0, 0, true],
    ['a', 'other', 9, 0, false],
    ['gone', 'shop', 2, 0, false],
    ['(other or no tool)', '', 5, 0, false], // the calls of all rows add up to the range
  ])
})

test('the cost of a page is the sum of its enabled tools', () => {
  const rows = toolRows(
    [tool('a'), tool('b', { tokens: 50, tokensEstimated: true }), tool('off', { enabled: false })],
    calls([call('a', 1)]),
  )
  expect(pageCosts(rows)).toEqual([{ siteId: 'shop', page: '/cart', tools: 2, tokens: 150, estimated: true }])
  expect(summaryOf(rows)).toEqual({
    tools: 3,
    disabled: 1,
    tokens: 150,
    estimated: true,
    never: 1,
    neverTokens: 50,
    findings: 0,
  })
})

test('law: pages add up to the total, and every filter returns a subset of the rows', () => {
  const tools = fc.uniqueArray(
    fc.record({ name: fc.string({ minLength: 1 }), tokens: fc.nat(9_999), page: fc.string() }),
    {
      selector: (entry) => entry.name,
      maxLength: 30,
    },
  )
  fc.assert(
    fc.property(tools, fc.string(), (entries, text) => {
      const rows = toolRows(
        entries.map(({ name, tokens, page }) => tool(name, { tokens, tool: { page, description: 'x' } })),
        null,
      )
      const total = pageCosts(rows).reduce((sum, page) => sum + page.tokens, 0)
      expect(total).toBe(summaryOf(rows).tokens)
      for (const show of ['never', 'findings', 'unregistered', 'all'])
        for (const row of filterTools(rows, toolFilterOf(new URLSearchParams({ show, find: text }))))
          expect(rows).toContain(row)
      expect(filterTools(rows, toolFilterOf(new URLSearchParams()))).toEqual(rows)
    }),
  )
})
