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
  const sentRequests = Array.from({ length: 600 }, (_, n) => ({
    occurredAtMs: nowMs - n * 100_000 * 14, // about ten days
    siteId: pick(['shop', 'blog'], n >> 3),
    type: pick(['agent.detected', 'agent.detected', 'authz.evaluated'], n),
    agent: pick([{ vendor: 'OpenAI' }, { vendor: 'constructor' }, {}], n >> 1),
    name: pick(['GPTBot', 'ChatGPT-User', null, '', '\u202e<b>1 2 *</b>'], n),
    purpose: pick(['training', 'user', null, 'toString'], n >> 2),
  }))
  const events = sentRequests.map(({ occurredAtMs, agent, name, purpose, ...otherFields }, n) =>
    event(`e${n}`, {
      ...otherFields,
      agent: { ...agent, name, purpose },
      occurredAt: new Date(occurredAtMs).toISOString(),
    }),
  )
  expect(await (await server.call('/v1/sdk/events', { key, body: { events } })).json()).toMatchObject({
    accepted: 600,
  })
  type Sent = (typeof sentRequests)[number]
  const queries: [query: string, isMeant: (sentRequest: Sent) => boolean][] = [
    ['', () => true],
    ['&siteId=blog', ({ siteId }) => siteId === 'blog'],
    ['&filter=vendor:OpenAI', ({ agent }) => 'vendor' in agent && agent.vendor === 'OpenAI'],
    ['&filter=name:GPTBot&siteId=shop', ({ name, siteId }) => name === 'GPTBot' && siteId === 'shop'],
    ['&filter=purpose:user&filter=purpose:', ({ purpose }) => purpose === 'user' || purpose === null],
  ]
  const formatName = (value: string | null | undefined): string => (value ? `name ${value}` : 'missing')
  for (const [query, isMeant] of queries) {
    const path = `/api/detect?range=7d${query}`
    const { agents, names, purposes, period } = (await (await viewer.call(path)).json()) as DetectCounts
    const counts = new Map<string, { count: number; before: number; blocked: number }>()
    for (const sentRequest of sentRequests) {
      const isIn = ({ since, until }: { since: string; until: string }) =>
        sentRequest.occurredAtMs >= Date.parse(since) && sentRequest.occurredAtMs < Date.parse(until)
      const periodName = isIn(period) ? 'count' : isIn(period.before) ? 'before' : null
      if (periodName === null || !isMeant(sentRequest)) continue
      const isDecision = sentRequest.type === 'authz.evaluated' // which the example's outcome blocks
      if (isDecision && periodName === 'before') continue
      if (!sentRequest.name && !sentRequest.purpose) continue
      const id = [(sentRequest.agent as { vendor?: string }).vendor, sentRequest.name, sentRequest.purpose]
        .map(formatName)
        .join()
      const rowCounts = counts.get(id) ?? { count: 0, before: 0, blocked: 0 }
      const measure = isDecision ? 'blocked' : periodName
      counts.set(id, { ...rowCounts, [measure]: rowCounts[measure] + 1 })
    }
    const listed = agents.map(({ vendor, name, purpose, ...measures }) => {
      const id = [vendor, name, purpose].map((part) =>
        typeof part === 'string' ? part : `name ${part.name}`,
      )
      return [id.join(), measures] as const
    })
    expect(listed.length).toBe(counts.size)
    expect(new Map(listed)).toEqual(counts)
    for (const [dimension, breakdown] of [['name', names] as const, ['purpose', purposes] as const]) {
      for (const { value, count, before: countBefore } of breakdown.rows) {
        const agentRows = agents.filter(
          (agentRow) => typeof agentRow[dimension] === 'object' && agentRow[dimension].name === value,
        )
        const sum = (field: 'count' | 'before') =>
          agentRows.reduce((total, agentRow) => total + agentRow[field], 0)
        expect([value, count, countBefore]).toEqual([value, sum('count'), sum('before')])
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
  const agentsBefore = [agent('a', '4', 3), agent('b', '6', 1)]
  const listed = agentRowsOf({ count: rows, before: agentsBefore, blocked: [agent('b', '3', 2)] }, 2)
  expect(
    listed.map(({ vendor, name, count, before: countBefore, blocked }) => [
      vendor,
      name,
      count,
      countBefore,
      blocked,
    ]),
  ).toEqual([
    [{ name: 'a' }, { name: '1' }, 9, 0, 0],
    [{ name: 'a' }, { name: '2' }, 8, 0, 0],
    [{ name: 'b' }, 'other', 12, 1, 2],
    [{ name: 'a' }, 'other', 6, 3, 0],
  ])
})
