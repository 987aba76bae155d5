/** Demo traffic is repeatable, valid, sorted and plausible. */
import { describe, expect, test } from 'bun:test'
import known from 'crawler-user-agents'
import { acceptEvents } from '../ingest/accept.ts'
import pack from '../evidence/bundled-pack.json'
import crawlers from './crawlers.json'
import { demoSiteId, type DemoEvent } from './event.ts'
import { liveEvents } from './traffic.ts'
import { demoTools } from './tools.ts'
import { dayOfTraffic, demoDays, demoTraffic } from './traffic.ts'
import { rarelyFaked } from './visit.ts'

const nowMs = Date.UTC(2026, 10, 20, 14, 30)
const dayMs = 86_400_000
const days = [...demoTraffic({ seed: 1, events: 20_000, nowMs })]
const allEvents = days.flat()

const knownTypes = [
  'agent.detected',
  'agent.missed',
  'agent.requested',
  'agent.referred',
  'auth.identity_presented',
  'auth.identity_cleared',
  'authz.policies_set',
  'authz.evaluated',
  'memory.accessed',
  'memory.updated',
  'tool.registered',
  'tool.executed',
  'tool.surfaced',
  'tool.progressed',
  'sdk.error',
]

function sessionsOf(events: DemoEvent[]): DemoEvent[][] {
  return [...Map.groupBy(events, ({ sessionId }) => sessionId).values()]
}

function counted(
  events: DemoEvent[],
  readKey: (event: DemoEvent) => string | undefined,
): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const event of events) counts[readKey(event) ?? ''] = (counts[readKey(event) ?? ''] ?? 0) + 1
  return counts
}

describe('repeatable', () => {
  test('the same seed gives the same events; another seed or scale shares no id', () => {
    expect([...demoTraffic({ seed: 1, events: 20_000, nowMs })]).toEqual(days)
    const ids = new Set(allEvents.map(({ id }) => id))
    expect(ids.size).toBe(allEvents.length)
    for (const otherEvents of [
      dayOfTraffic(20_000, 2, 20_000),
      dayOfTraffic(Math.floor(nowMs / dayMs), 1, 10_000),
    ]) {
      expect(otherEvents.some(({ id }) => ids.has(id))).toBe(false)
    }
  })

  test('a day never changes, so a later run only adds new days', () => {
    const later = [...demoTraffic({ seed: 1, events: 20_000, nowMs: nowMs + 3 * dayMs })].flat()
    const eventsBefore = new Map(allEvents.map((event) => [event.id, event]))
    const shared = later.filter(({ id }) => eventsBefore.has(id))
    expect(shared.length).toBeGreaterThan(allEvents.length * 0.85)
    for (const event of shared) expect(event).toEqual(eventsBefore.get(event.id)!)
  })

  test.each([1_000, 5_000, 20_000])('%i requested events: within 8 %%', (events) => {
    const eventCount = [...demoTraffic({ seed: 4, events, nowMs })].flat().length
    expect(Math.abs(eventCount - events) / events).toBeLessThan(0.08)
  })
})

describe('valid', () => {
  test('ingest accepts every event, and every type is known', () => {
    for (let from = 0; from < allEvents.length; from += 1_000) {
      const body = JSON.stringify({ events: allEvents.slice(from, from + 1_000) })
      const { records, rejected } = acceptEvents(body, 'application/json', [demoSiteId])
      expect(rejected).toEqual([])
      expect(records.length).toBe(Math.min(1_000, allEvents.length - from))
    }
    expect(Object.keys(counted(allEvents, ({ type }) => type)).sort()).toEqual([...knownTypes].sort())
  })

  test('every event is marked as demo data', () => {
    for (const { siteId, metadata, id, sessionId } of allEvents) {
      expect([siteId, metadata.demo, id.slice(0, 5), sessionId.slice(0, 5)]).toEqual([
        'demo-shop',
        true,
        'demo_',
        'demo_',
      ])
    }
  })
})

describe('sorted', () => {
  test('30 days, each sorted, with no event in the future', () => {
    expect(days).toHaveLength(demoDays + 1) // the first and the last are parts of one
    expect(nowMs - Date.parse(allEvents[0]!.occurredAt)).toBeWithin(29.5 * dayMs, demoDays * dayMs)
    for (const day of days) {
      const times = day.map(({ occurredAt }) => occurredAt)
      expect(times).toEqual([...times].sort())
    }
    for (const hour of [0, 12, 23]) {
      const atMs = Date.UTC(2026, 10, 20, hour, 1)
      const demoEvents = [...demoTraffic({ seed: 1, events: 5_000, nowMs: atMs })].flat()
      const times = demoEvents.map(({ occurredAt }) => Date.parse(occurredAt))
      expect(Math.max(...times)).toBeWithin(atMs - dayMs / 2, atMs + 1)
      expect(Math.min(...times)).toBeGreaterThanOrEqual(atMs - demoDays * dayMs)
    }
  })

  test('a visit begins with its detection, a call follows its decision, trust never falls', () => {
    const trusts = ['detected', 'declared', 'verified', 'linked']
    let visits = 0
    for (const session of sessionsOf(allEvents)) {
      const times = session.map(({ occurredAt }) => Date.parse(occurredAt))
      expect(new Set(times).size).toBe(times.length)
      if (!session[0]!.agent || session[0]!.type === 'agent.referred') continue
      visits++
      expect(session[0]!.type).toMatch(/^agent\.(?:detected|missed)$/)
      expect(new Set(session.map(({ agent }) => agent?.vendor)).size).toBe(1)
      let trust = 0
      session.forEach((event, index) => {
        const now = trusts.indexOf(event.agent!.trust!)
        expect(now).toBeGreaterThanOrEqual(trust)
        trust = now
        if (event.type !== 'tool.executed') return
        const decided = session
          .slice(0, index)
          .findLast(({ type, tool }) => type === 'authz.evaluated' && tool === event.tool)
        expect(decided?.policy?.decision === 'allow').toBe(event.outcome !== 'blocked')
      })
    }
    expect(visits).toBeGreaterThan(1_000)
  })
})

describe('plausible', () => {
  test('every class, every trust, most protocols, several vendors, real tools', () => {
    expect(Object.keys(counted(allEvents, ({ agent }) => agent?.class)).sort()).toEqual([
      '',
      'crawler',
      'dom',
      'screenshot',
      'webmcp',
    ])
    const protocols = Object.keys(counted(allEvents, ({ metadata }) => metadata.protocol))
    expect(protocols.length).toBeGreaterThanOrEqual(9)
    expect(Object.keys(counted(allEvents, ({ agent }) => agent?.vendor)).length).toBeGreaterThan(25)
    const bots = counted(allEvents, ({ agent }) => agent?.name)
    expect(bots).toMatchObject({
      GPTBot: expect.any(Number) as number,
      'OAI-SearchBot': expect.any(Number) as number,
    })
    const names = new Set(demoTools.map(({ name }) => name))
    expect(names.size).toBe(117)
    for (const { tool } of allEvents) if (tool !== undefined) expect(names.has(tool)).toBe(true)
  })

  test('most calls succeed, some fail with an error, some are blocked with a reason', () => {
    const calls = allEvents.filter(({ type }) => type === 'tool.executed')
    const outcomes = counted(calls, ({ outcome }) => outcome)
    expect(outcomes['success']! / calls.length).toBeGreaterThan(0.75)
    expect(outcomes['error']! / calls.length).toBeGreaterThan(0.01)
    expect(outcomes['blocked']! / calls.length).toBeGreaterThan(0.02)
    for (const { outcome, error, policy, durationMs } of calls) {
      expect(error !== undefined).toBe(outcome === 'error')
      if (outcome === 'blocked') expect(policy?.reason).toBeString()
      // A blocked call has no duration.
      if (outcome === 'blocked') expect(durationMs).toBeUndefined()
      else expect(durationMs).toBeGreaterThanOrEqual(0)
    }
    const durations = calls.flatMap(({ durationMs }) => durationMs ?? []).sort((a, b) => a - b)
    expect(durations[Math.floor(durations.length / 2)]!).toBeWithin(50, 400)
    expect(durations[Math.floor(durations.length * 0.99)]!).toBeGreaterThan(1_000)
  })

  test('traffic by people drops at night and on weekends, crawlers do not', () => {
    const readDate = (event: DemoEvent) => new Date(event.occurredAt)
    const people = allEvents.filter(({ agent }) => agent && agent.class !== 'crawler')
    const crawling = allEvents.filter(({ agent }) => agent?.class === 'crawler')
    const night = (events: DemoEvent[]) =>
      events.filter((event) => readDate(event).getUTCHours() < 5).length / events.length
    expect(night(people)).toBeLessThan(0.06)
    expect(night(crawling)).toBeGreaterThan(0.15)
    const weekend = (events: DemoEvent[]) =>
      events.filter((event) => readDate(event).getUTCDay() % 6 === 0).length / events.length
    expect(weekend(people)).toBeLessThan(0.22)
    expect(weekend(crawling)).toBeGreaterThan(weekend(people))
  })

  test('requests have verdicts by the lists of the bundled evidence; few are contradicted', () => {
    const requests = allEvents.filter(({ type }) => type === 'agent.requested')
    const verdicts = counted(requests, ({ agent }) => agent!.verdict)
    expect(Object.keys(verdicts).toSorted()).toEqual(['contradicted', 'unverifiable', 'verified'])
    expect(verdicts['contradicted']! / requests.length).toBeWithin(0.02, 0.12)
    const lists = new Map(pack.lists.map((addressList) => [addressList.list, addressList]))
    for (const { agent } of requests) {
      const { evidence, vendor, name } = agent!
      if (evidence === undefined) continue
      const { operator, products, published, networks } = lists.get(evidence.list)!
      expect([operator, Object.keys(products), published]).toEqual([
        vendor,
        expect.arrayContaining([name!]),
        evidence.listDate,
      ])
      if (evidence.networks !== undefined) expect(evidence.networks).toBe(networks.length)
    }
  })

  test('crawlers have the user agents of real crawlers', () => {
    const instances = new Set(known.flatMap((crawler) => crawler.instances))
    for (const { userAgent } of crawlers)
      expect([userAgent, instances.has(userAgent)]).toEqual([userAgent, true])
  })
})

test('the last day has news, others on each day, and a second run of the day sends the same ids', () => {
  const sinceMs = nowMs - dayMs
  const isNew = ({ occurredAt }: DemoEvent) => Date.parse(occurredAt) >= sinceMs
  const onlyNew = (readValue: (event: DemoEvent) => string | undefined) => {
    const valuesBefore = new Set(allEvents.filter((event) => !isNew(event)).map(readValue))
    return [...new Set(allEvents.filter(isNew).map(readValue))].filter((value) => !valuesBefore.has(value))
  }
  expect(onlyNew(({ agent }) => agent?.vendor)).toHaveLength(1)
  expect(onlyNew(({ policy }) => policy?.ruleId)).toContain('crawl:training')
  const faked = onlyNew(({ agent }) => (agent?.verdict === 'contradicted' ? agent.name : undefined))
  expect(rarelyFaked).toEqual(expect.arrayContaining(faked.map((name) => name as never)))
  expect(faked).toHaveLength(1)
  const calls = allEvents.filter(({ type, tool }) => type === 'tool.executed' && tool === 'search_code')
  const share = (eventGroup: DemoEvent[]) =>
    eventGroup.filter(({ outcome }) => outcome === 'error').length / eventGroup.length
  expect(share(calls.filter(isNew))).toBeGreaterThan(3 * share(calls.filter((event) => !isNew(event))))
  const later = [...demoTraffic({ seed: 1, events: 20_000, nowMs: nowMs + 2 * 3_600_000 })].flat()
  const ids = new Set(allEvents.map(({ id }) => id))
  const added = later.filter(({ id }) => !ids.has(id))
  expect(Math.min(...added.map(({ occurredAt }) => Date.parse(occurredAt)))).toBeGreaterThan(nowMs)
  const tomorrow = [...demoTraffic({ seed: 1, events: 20_000, nowMs: nowMs + dayMs })].flat()
  const vendors = (eventGroup: DemoEvent[]) => new Set(eventGroup.map(({ agent }) => agent?.vendor))
  expect(vendors(tomorrow).difference(vendors(allEvents)).size).toBe(1)
})

test('live events keep the order of each visit and have unique ids', () => {
  const next = liveEvents(1, nowMs)
  const events = Array.from({ length: 3_000 }, (_, index) => next(nowMs + index))
  expect(new Set(events.map(({ id }) => id)).size).toBe(3_000)
  const { rejected } = acceptEvents(JSON.stringify({ events: events.slice(0, 1_000) }), 'application/json', [
    demoSiteId,
  ])
  expect(rejected).toEqual([])
  for (const session of sessionsOf(events)) expect(session[0]!.type).toMatch(/^agent\./)
  const atOnce = new Set(events.slice(1_000, 1_050).map(({ sessionId }) => sessionId))
  expect(atOnce.size).toBeGreaterThan(4)
})
