/** Pillars match whole first words of types, and every event belongs to one. */
import { expect, test } from 'bun:test'
import { pillarCounts, pillarSeries } from './pillars.ts'

const countsOf = (count: number, before: number) => ({ count, before, steps: [count, 0], outcomes: {} })

test('auth and authz are separate pillars; other types are counted together', () => {
  const counts = pillarCounts(
    {
      'auth.x': countsOf(1, 2),
      'authz.evaluated': countsOf(3, 0),
      authz: countsOf(4, 1),
      'sdk.error': countsOf(5, 0),
    },
    2,
  )
  const found = counts.map(({ pillar, count, before }) => [pillar?.name ?? null, count, before])
  expect(found).toEqual([
    ['Detect', 0, 0],
    ['Auth', 1, 2],
    ['Authz', 7, 1],
    ['WebMCP Tools', 0, 0],
    ['Knaph', 0, 0],
    [null, 5, 0],
  ])
  expect(pillarSeries(counts).map(({ name, counts: steps }) => [name, ...steps])).toEqual([
    ['Auth (auth.*)', 1, 0],
    ['Authz (authz.*)', 7, 0],
    ['other', 5, 0],
  ])
})
