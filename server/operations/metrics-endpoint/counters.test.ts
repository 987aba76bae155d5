/** Response times are counted by route, method and status. */
import { expect, test } from 'bun:test'
import { makeHttpTimes } from './counters.ts'

test('every response is counted in its row, those of unknown methods together', () => {
  const times = makeHttpTimes()
  const counted = (route: string | undefined, method: string, status: number) =>
    times.note(route, method, status, 3)
  counted('/v1/traces', 'GET', 200)
  for (const method of ['BREW', 'WHEN', 'BREW']) counted('/v1/traces', method, 405)
  counted('/v1/traces', 'GET', 200)
  counted('/v1/traces', 'GET', 401)
  counted(undefined, 'GET', 401)
  const rows = times.report().map(({ route, method, status, histogram }) => {
    return [route, method, status, histogram.counts.reduce((sum, count) => sum + count, 0)]
  })
  expect(rows).toEqual([
    ['/v1/traces', 'GET', '200', 2],
    ['/v1/traces', 'other', '405', 3],
    ['/v1/traces', 'GET', '401', 1],
    ['none', 'GET', '401', 1],
  ])
})
