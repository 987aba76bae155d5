/** Tests that a request is judged by the robots.txt of its time. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { loadRobots, markRobots, robotsReader } from './judge.ts'

const noon = Date.UTC(2026, 10, 20, 12)
const hourMs = 3_600_000
const file = (...paths: string[]) => ['User-agent: *', ...paths.map((path) => `Disallow: ${path}`)].join('\n')

test('a policy changed at noon judges morning requests by the old one', () => {
  const mark = markRobots([
    { version: 2, fromMs: noon, text: file('/x', '/new') },
    { version: 1, fromMs: noon - 4 * hourMs, text: file('/old') },
  ])
  const markPath = (path: string, timeMs: number) => mark('GPTBot', path, timeMs)
  const old = { version: 1, from: '2026-11-20T08:00:00.000Z' }
  const now = { version: 2, from: '2026-11-20T12:00:00.000Z' }
  expect(markPath('/old', noon - 1)).toEqual({ robots: 'disallowed', robotsRule: { ...old, line: 2 } })
  expect(markPath('/new', noon - 1)).toEqual({ robots: 'allowed', robotsRule: old })
  expect(markPath('/new?q=1', noon)).toEqual({ robots: 'disallowed', robotsRule: { ...now, line: 3 } })
  expect(markPath('/old', noon)).toEqual({ robots: 'allowed', robotsRule: now })
  expect(markPath('/old', noon - 4 * hourMs - 1)).toBeNull()
})

test('a request without a path is not judged, and long paths are judged by their start', () => {
  const mark = markRobots([{ version: 1, fromMs: 0, text: file('/a') }])
  for (const target of [null, '*', 'example.com:443', '']) expect(mark('GPTBot', target, noon)).toBeNull()
  expect(mark('GPTBot', `/a${'b'.repeat(1e6)}`, noon)?.robots).toBe('disallowed')
})

test('variants of Googlebot follow its group where they have none', () => {
  const mark = markRobots([
    {
      version: 1,
      fromMs: 0,
      text: 'User-agent: Googlebot\nDisallow: /g\nUser-agent: Googlebot-News\nDisallow: /n',
    },
  ])
  expect(mark('Googlebot-Image', '/g', noon)?.robots).toBe('disallowed')
  expect(mark('Googlebot-News', '/g', noon)?.robots).toBe('allowed')
})

test('any number of versions and pages, in any order of time, give the verdicts of each file alone', () => {
  const requests = fc.array(fc.record({ at: fc.nat(20), page: fc.nat(8), name: fc.constantFrom('a', 'b') }))
  const times = fc.uniqueArray(fc.nat(20), { maxLength: 8 })
  fc.assert(
    fc.property(times, requests, (starts, queries) => {
      const mark = markRobots(
        starts.map((fromMs, index) => ({ version: index + 1, fromMs, text: file(`/${fromMs}`) })),
      )
      for (const { at: timeMs, page, name } of queries) {
        const from = Math.max(...starts.filter((start) => start <= timeMs))
        const expected = starts.some((start) => start <= timeMs)
          ? page === from
            ? 'disallowed'
            : 'allowed'
          : undefined
        expect(mark(name, `/${page}`, timeMs)?.robots).toBe(expected as never)
      }
    }),
  )
})

test('versions are loaded with their texts; one that is gone is left out', async () => {
  const list = async () => [
    { version: 2, fromMs: noon },
    { version: 1, fromMs: 0 },
  ]
  const mark = await loadRobots(list, async (version) => (version === 1 ? file('/') : null))
  expect(mark?.('a', '/', noon)?.robotsRule.version).toBe(1)
  expect(
    await loadRobots(
      async () => [],
      async () => null,
    ),
  ).toBeNull()
})

test('a version that is set while logs arrive counts within a second, and texts are read once', async () => {
  let ms = 0
  let finds = 0
  const versions = [{ version: 1, fromMs: 0 }]
  const store = {
    robots: {
      list: async () => [...versions],
      find: async ({ version }: { version: number }) => {
        finds++
        return { text: file(`/${version}`) }
      },
    },
  }
  const reader = robotsReader(store as never, { now: () => ms })
  const verdict = async (path: string) => (await reader.of('org', 'shop'))?.('a', path, 10)?.robots
  expect([await verdict('/1'), await verdict('/2')]).toEqual(['disallowed', 'allowed'])
  versions.unshift({ version: 2, fromMs: 5 })
  ms = 1_000
  expect([await verdict('/1'), await verdict('/2')]).toEqual(['allowed', 'disallowed'])
  ms = 9_000
  await verdict('/1')
  expect(finds).toBe(3)
  versions.length = 0
  ms = 20_000
  expect(await verdict('/2')).toBeUndefined()
})
