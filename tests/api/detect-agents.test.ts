/** Detect counts agents by vendor, name and purpose exactly, in the range and in the one before. */
import { expect, test } from 'bun:test'
import { agentRowsOf } from '../../server/counts/detections.ts'
import type { DetectCounts } from '../../server/counts/shapes.ts'
import { event } from '../support/events.ts'
import { person } from '../support/people.ts'
import { testServer } from '../support/server.ts'

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T

test('counts by vendor, name and purpose, for one site, all sites and filters, now and before', async () => {
  await using server = await testServer()
  const key = await server.key('ingest')
  const viewer = await person(server, server.org, 'viewer')
  const nowMs = server.clock.now()
  const sent = Array.from({ length: 600 }, (_, n) => ({
    occurredAtMs: nowMs - n * 100_000 * 14, // about ten days
    siteId: pick(['shop', 'blog'], n >> 3),
    type: pick(['agent.detected', 'agent.detected', 'authz.evaluated'], n),
    agent: pick([{ vendor: 'OpenAI' }, { vendor: 'constructor' }, {}], n >> 1),
    name: pick(['GPTBot', 'ChatGPT-User', null, '', '\u202e<b>1 2 *</b>'], n),
    purpose: pick(['training', 'user', null, 'toString'], n >> 2),
  }))
  const events = sent.map(({ occurredAtMs, agent, name, purpose, ...more }, n) =>
    event(`e${n}`, {
      ...more,
      agent: { ...agent, name, purpose },
      occurredAt: new Date(occurredAtMs).toISOString(),
    }),
  )
  expect(await (await server.call('/v1/sdk/events', { key, body: { events } })).json()).toMatchObject({
    accepted: 600,
  })
  type Sent = (typeof sent)[number]
  const queries: [query: string, isMeant: (one: Sent) => boolean][] = [
    ['', () => true],
    ['&siteId=blog', ({ siteId }) => siteId === 'blog'],
    ['&filter=vendor:OpenAI', ({ agent }) => 'vendor' in agent && agent.vendor === 'OpenAI'],
    ['&filter=name:GPTBot&siteId=shop', ({ name, siteId }) => name === 'GPTBot' && siteId === 'shop'],
    ['&filter=purpose:user&filter=purpose:', ({ purpose }) => purpose === 'user' || purpose === null],
  ]
  const named = (value: string | null | undefined): string => (value ? `name ${value}` : 'missing')
  for (const [query, isMeant] of queries) {
    const path = `/api/detect?range=7d${query}`
    const { agents, names, purposes, period } = (await (await viewer.call(path)).json()) as DetectCounts
    const counts = new Map<string, { count: number; before: number; blocked: number }>()
    for (const one of sent) {
      const isIn = ({ since, until }: { since: string; until: string }) =>
        one.occurredAtMs >= Date.parse(since) && one.occurredAtMs < Date.parse(until)
      const when = isIn(period) ? 'count' : isIn(period.before) ? 'before' : null
      if (when === null || !isMeant(one)) continue
      const isDecision = one.type === 'authz.evaluated' // which the example's outcome blocks
      if (isDecision && when === 'before') continue
      if (!one.name && !one.purpose) continue
      const id = [(one.agent as { vendor?: string }).vendor, one.name, one.purpose].map(named).join()
      const known = counts.get(id) ?? { count: 0, before: 0, blocked: 0 }
      const measure = isDecision ? 'blocked' : when
      counts.set(id, { ...known, [measure]: known[measure] + 1 })
    }
    const listed = agents.map(({ vendor, name, purpose, ...measures }) => {
      const id = [vendor, name, purpose].map((one) => (typeof one === 'string' ? one : `name ${one.name}`))
      return [id.join(), measures] as const
    })
    expect(listed.length).toBe(counts.size)
    expect(new Map(listed)).toEqual(counts)
    for (const [by, breakdown] of [['name', names] as const, ['purpose', purposes] as const]) {
      for (const { value, count, before } of breakdown.rows) {
        const mine = agents.filter((one) => typeof one[by] === 'object' && one[by].name === value)
        const sum = (of: 'count' | 'before') => mine.reduce((total, one) => total + one[of], 0)
        expect([value, count, before]).toEqual([value, sum('count'), sum('before')])
      }
    }
  }
}, 90_000)

test('agents beyond the limit of rows count as others of their vendor', () => {
  const agent = (vendor: string, name: string, count: number) => ({
    vendor: { name: vendor },
    name: { name },
    purpose: 'missing' as const,
    count,
  })
  const rows = [
    agent('a', '1', 9),
    agent('a', '2', 8),
    agent('b', '3', 7),
    agent('a', '4', 6),
    agent('b', '5', 5),
  ]
  const before = [agent('a', '4', 3), agent('b', '6', 1)]
  const listed = agentRowsOf({ count: rows, before, blocked: [agent('b', '3', 2)] }, 2)
  expect(
    listed.map(({ vendor, name, count, before, blocked }) => [vendor, name, count, before, blocked]),
  ).toEqual([
    [{ name: 'a' }, { name: '1' }, 9, 0, 0],
    [{ name: 'a' }, { name: '2' }, 8, 0, 0],
    [{ name: 'b' }, 'other', 12, 1, 2],
    [{ name: 'a' }, 'other', 6, 3, 0],
  ])
})
