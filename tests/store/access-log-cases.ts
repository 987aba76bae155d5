/** Conformance of access logs: lines are stored once, with their events, however they are sent. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type {
  AccessLines,
  AccessResult,
  EventBatch,
  OtherKind,
  RequestKind,
  Store,
} from '../../db/contract/store.ts'
import { makeAudit, makeBatch, makeEvent, noon } from './make.ts'
import { failure, type Cases, type NodeCases } from './subject.ts'
import { runs } from '../support/runs.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A line of a log: of an agent, of others, or one that is not a request. */
interface LogLine {
  kind: RequestKind | 'note' | 'bad'
  hour: number // before noon
  bytes: number
}

const lineBytes = 10
const tailOf = (to: number): string => `tail ${to}`

/** The lines from `first` to before `last` as a reader sends them. Each agent's line also starts a session. */
export function linesBatch(
  orgId: string,
  log: LogLine[],
  first: number,
  last: number,
  options: Partial<AccessLines> = {},
): EventBatch {
  const { siteId = 'shop', source = 'log_a' } = options
  const lines = log.slice(first, last)
  const counts: AccessLines['counts'] = []
  const requests: AccessLines['requests'] = []
  const events: EventBatch['events'] = []
  lines.forEach(({ kind, hour, bytes }, index) => {
    const atMs = noon - hour * hourMs
    if (kind === 'agent') {
      const id = `${source} ${first + index}`
      events.push(makeEvent(id, { siteId, type: 'agent.requested', occurredAtMs: atMs + 5 }))
      events.push(makeEvent(`${id} session`, { siteId, occurredAtMs: atMs }))
      requests.push(bytes, null)
    } else if (kind !== 'note' && kind !== 'bad') counts.push({ kind, hourMs: atMs, requests: 1, bytes })
  })
  const countOf = (...kinds: LogLine['kind'][]) => lines.filter(({ kind }) => kinds.includes(kind)).length
  const access: AccessLines = {
    siteId,
    source,
    path: '/var/log/access.log',
    format: 'combined',
    from: first * lineBytes,
    to: last * lineBytes,
    tail: tailOf(last * lineBytes),
    requests,
    counts,
    sums: {
      lines: lines.length,
      people: countOf('person'),
      excluded: countOf('asset', 'bot', 'note'),
      bad: countOf('bad'),
    },
    newestMs: lines.length === 0 ? null : noon - Math.min(...lines.map(({ hour }) => hour)) * hourMs,
    ...options,
  }
  return { ...makeBatch(orgId, events), access }
}

const resultOf = async (store: Store, batch: EventBatch): Promise<AccessResult> =>
  (await store.events.append(batch)).access!

const allTime = { sinceMs: 0, untilMs: null }
const noCounts = { agent: 0, person: 0, asset: 0, bot: 0 }

/** What every store must answer about a log that was stored as a whole. */
async function expectWhole(store: Store, orgId: string, log: LogLine[]): Promise<void> {
  const { byHour, bySite } = await store.accessLogs.counts({ orgId, ...allTime })
  const expected = new Map<string, { requests: number; bytes: number }>()
  for (const { kind, hour, bytes } of log) {
    if (kind === 'note' || kind === 'bad') continue
    const key = `${noon - hour * hourMs} ${kind}`
    const { requests, bytes: sum } = expected.get(key) ?? { requests: 0, bytes: 0 }
    expected.set(key, { requests: requests + 1, bytes: sum + bytes })
  }
  const hourCounts = byHour.flatMap(({ hourMs: start, ...kinds }) =>
    Object.entries(kinds).flatMap(([kind, counts]) =>
      counts.requests === 0 ? [] : [[`${start} ${kind}`, counts] as const],
    ),
  )
  expect(new Map<string, unknown>(hourCounts)).toEqual(expected)
  expect(byHour.map((row) => row.hourMs)).toEqual(byHour.map((row) => row.hourMs).toSorted((a, b) => a - b))
  const countOf = (...kinds: LogLine['kind'][]) => log.filter(({ kind }) => kinds.includes(kind)).length
  const kinds: { [kind in RequestKind]: number } = { ...noCounts }
  for (const kind of Object.keys(noCounts) as RequestKind[]) kinds[kind] = countOf(kind)
  const sites = bySite.map(({ siteId, ...counts }) => ({
    siteId,
    ...Object.fromEntries(Object.entries(counts).map(([kind, { requests }]) => [kind, requests])),
  }))
  expect(sites).toEqual(
    countOf('agent', 'person', 'asset', 'bot') === 0 ? [] : [{ siteId: 'shop', ...kinds }],
  )
  const [source, second] = await store.accessLogs.sources(orgId)
  expect(second).toBeUndefined()
  const to = log.length * lineBytes
  expect(source).toMatchObject({
    position: to,
    tail: tailOf(to),
    lines: log.length,
    people: countOf('person'),
  })
  expect(source).toMatchObject({
    assets: countOf('asset'),
    bots: countOf('bot'),
    notes: countOf('note'),
    bad: countOf('bad'),
  })
  expect(source!.stored + source!.deduped).toBe(countOf('agent'))
  const { byType } = await store.events.overview(orgId)
  expect(byType['agent.requested'] ?? 0).toBe(source!.stored)
}

const anyLine: fc.Arbitrary<LogLine> = fc.record({
  kind: fc.constantFrom('agent', 'person', 'asset', 'bot', 'note', 'bad'),
  hour: fc.nat(3),
  bytes: fc.oneof(fc.nat(5_000), fc.constant(2 ** 40)),
})

/** A reader's moves: it sends the next lines, repeats earlier ones, or is somewhere else in the log. */
const anyMove = fc.record({
  what: fc.constantFrom('next', 'next', 'next', 'again', 'elsewhere'),
  size: fc.integer({ min: 1, max: 7 }),
  at: fc.nat(50),
})

const kinds: LogLine['kind'][] = ['agent', 'person', 'asset', 'bot', 'note', 'bad', 'agent', 'person']
export const someLog: LogLine[] = kinds.map((kind, index) => ({ kind, hour: index % 2, bytes: index * 100 }))

export const accessLogCases: Cases = {
  async 'lines are stored with their events, are known again, and a gap stores nothing'({ store, orgId }) {
    expect(await store.accessLogs.position({ orgId, siteId: 'shop', source: 'log_a' })).toBeNull()
    const no = { stored: 0, deduped: 0, rejected: 0 }
    expect(await resultOf(store, linesBatch(orgId, someLog, 2, 4))).toEqual({
      state: 'behind',
      position: 0,
      tail: '',
      ...no,
    })
    expect(await store.accessLogs.sources(orgId)).toEqual([])
    const first = linesBatch(orgId, someLog, 0, 3)
    expect(await store.events.append(first)).toEqual({
      accepted: 2,
      deduped: 0,
      rejected: [],
      access: { state: 'stored', position: 30, tail: tailOf(30), ...no, stored: 1 },
    })
    expect(await store.events.append(first)).toEqual({
      accepted: 0,
      deduped: 2,
      rejected: [],
      access: { state: 'known', position: 30, tail: tailOf(30), ...no, deduped: 1 },
    })
    const behind = { state: 'behind' as const, position: 30, tail: tailOf(30), ...no }
    for (const [from, to] of [
      [2, 5],
      [4, 5],
    ] as const) {
      const gap = await store.events.append(linesBatch(orgId, someLog, from, to))
      expect(gap).toEqual({ accepted: 0, deduped: 0, rejected: [], access: behind })
    }
    expect(await resultOf(store, linesBatch(orgId, someLog, 3, 8))).toMatchObject({ state: 'stored' })
    await expectWhole(store, orgId, someLog)
    expect(await store.accessLogs.position({ orgId, siteId: 'shop', source: 'log_a' })).toEqual({
      position: 80,
      tail: tailOf(80),
    })
  },
  async 'lines of people alone are stored, and their site is listed'({ store, orgId }) {
    const people = someLog.filter(({ kind }) => kind === 'person')
    expect(await store.events.append(linesBatch(orgId, people, 0, 2))).toMatchObject({ accepted: 0 })
    await expectWhole(store, orgId, people)
    expect((await store.sites.list(orgId)).map(({ siteId }) => siteId)).toEqual(['shop'])
    expect((await store.events.overview(orgId)).total).toBe(0)
  },
  async 'an event that is stored already counts as deduped, not as a request'({ store, orgId }) {
    const batch = linesBatch(orgId, someLog, 0, 8)
    await store.events.append({ ...makeBatch(orgId, batch.events.slice(0, 1)) })
    expect(await store.events.append(batch)).toMatchObject({ accepted: 3, deduped: 1 })
    const [source] = await store.accessLogs.sources(orgId)
    expect(source).toMatchObject({ lines: 8, stored: 1, deduped: 1, people: 2, assets: 1, bots: 1, bad: 1 })
    const { byHour } = await store.accessLogs.counts({ orgId, ...allTime })
    expect(byHour.map(({ agent }) => agent.requests)).toEqual([0, 1])
  },
  async 'any split, repetition and order that readers send leads to the same counts'({ store, orgId }) {
    let run = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyLine, { minLength: 1, maxLength: 40 }),
        fc.array(anyMove, { maxLength: 25 }),
        async (log, moves) => {
          const source = `log_${++run}`
          let linesSent = 0
          const send = async (first: number, last: number) => {
            const positionBefore = linesSent
            const batch = linesBatch(orgId, log, first, last, { source, siteId: 'random' })
            const { state, position } = await resultOf(store, batch)
            if (last <= positionBefore)
              expect([state, position]).toEqual(['known', positionBefore * lineBytes])
            else if (first === positionBefore) expect([state, position]).toEqual(['stored', last * lineBytes])
            else expect([state, position]).toEqual(['behind', positionBefore * lineBytes])
            linesSent = position / lineBytes
          }
          for (const { what: move, size, at: place } of moves) {
            const first =
              move === 'next' ? linesSent : move === 'again' ? place % (linesSent + 1) : place % log.length
            const last =
              move === 'again' ? Math.min(linesSent, first + size) : Math.min(log.length, first + size)
            if (first < last) await send(first, last)
          }
          if (linesSent < log.length) await send(linesSent, log.length)
          const accessSource = (await store.accessLogs.sources(orgId)).find(
            (candidate) => candidate.source === source,
          )!
          const countOf = (kind: LogLine['kind']) => log.filter((line) => line.kind === kind).length
          expect(accessSource).toMatchObject({
            lines: log.length,
            stored: countOf('agent'),
            deduped: 0,
            people: countOf('person'),
          })
          expect(accessSource).toMatchObject({
            assets: countOf('asset'),
            bots: countOf('bot'),
            notes: countOf('note'),
            bad: countOf('bad'),
          })
          const counted = log.filter(({ kind }) => kind !== 'note' && kind !== 'bad')
          expect(accessSource.bytes).toBe(counted.reduce((sum, { bytes }) => sum + bytes, 0))
        },
      ),
      { numRuns: runs(20) },
    )
    const sources = await store.accessLogs.sources(orgId)
    const { bySite } = await store.accessLogs.counts({ orgId, ...allTime, siteIds: ['random'] })
    const sum = (name: 'stored' | 'people' | 'assets' | 'bots') =>
      sources.reduce((total, accessSource) => total + accessSource[name], 0)
    const [site] = bySite
    const requests = [site!.agent, site!.person, site!.asset, site!.bot].map((entry) => entry.requests)
    expect(requests).toEqual([sum('stored'), sum('people'), sum('assets'), sum('bots')])
  },
  async 'batches of one log and of many in one group add up'({ store, orgId }) {
    const long = Array.from({ length: 40 }, (_, index) => someLog[index % someLog.length]!)
    const appends = ['log_a', 'log_b', 'log_c'].flatMap((source) =>
      [0, 1, 2, 3].map((part) => {
        const last = (part + 1) * 10
        return store.events.append(linesBatch(orgId, long, part * 10, last, { source }))
      }),
    )
    const states = (await Promise.all(appends)).map(({ access }) => access!.state)
    expect(states.filter((state) => state === 'stored').length).toBeGreaterThanOrEqual(3)
    for (const source of ['log_a', 'log_b', 'log_c'])
      for (let part = 0; part < 4; part++)
        await store.events.append(linesBatch(orgId, long, part * 10, (part + 1) * 10, { source }))
    const sources = await store.accessLogs.sources(orgId)
    expect(sources.map(({ lines, stored, people }) => [lines, stored, people])).toEqual(
      Array.from({ length: 3 }, () => [40, 10, 10]),
    )
  },
  async 'lines that do not add up, or have no place, are rejected and store nothing'({ store, orgId }) {
    const good = linesBatch(orgId, someLog, 0, 8)
    const wrong: Partial<AccessLines>[] = [
      { sums: { lines: 9, people: 2, excluded: 3, bad: 1 } },
      { sums: { lines: 8, people: 3, excluded: 2, bad: 1 } },
      { sums: { lines: 5, people: 2, excluded: 0, bad: 1 } },
      { requests: [1] },
      { counts: [{ hourMs: noon, kind: 'person' as OtherKind, requests: -2, bytes: 0 }] },
      { to: 0 },
      { source: '' },
      { source: '(drains)' },
      { source: 'x'.repeat(81) },
      { siteId: '' },
      { tail: 'a\0b' },
    ]
    for (const fields of wrong) {
      const error = await failure(store.events.append({ ...good, access: { ...good.access!, ...fields } }))
      expect([error.kind, error.message]).toEqual(['internal', 'the lines of an access log do not add up'])
    }
    expect([await store.accessLogs.sources(orgId), (await store.events.overview(orgId)).total]).toEqual([
      [],
      0,
    ])
    const path = `/var/log/\0${'x'.repeat(2_000)}`
    expect(await resultOf(store, linesBatch(orgId, someLog, 0, 8, { path }))).toMatchObject({
      state: 'stored',
    })
    const [source] = await store.accessLogs.sources(orgId)
    expect(source!.path).toBe(`/var/log/\u2400${'x'.repeat(1_014)}`)
  },
  async 'a time far ahead counts when it arrived'({ store, orgId }) {
    const batch = linesBatch(orgId, someLog, 0, 8)
    const ahead = (ms: number) => ms + 100 * dayMs
    const counts = batch.access!.counts.map((count) => ({ ...count, hourMs: ahead(count.hourMs) }))
    const events = batch.events.map((event) => ({ ...event, occurredAtMs: ahead(event.occurredAtMs) }))
    await store.events.append({ ...batch, receivedAtMs: noon, events, access: { ...batch.access!, counts } })
    const { byHour } = await store.accessLogs.counts({ orgId, ...allTime })
    expect(
      byHour.map(({ hourMs: start, agent, person }) => [start, agent.requests, person.requests]),
    ).toEqual([[noon, 2, 2]])
  },
  async 'counts of a range and of sites'({ store, orgId }) {
    await store.events.append(linesBatch(orgId, someLog, 0, 8))
    const otherLog = { siteId: 'blog', source: 'log_b' }
    await store.events.append(linesBatch(orgId, someLog, 0, 4, otherLog))
    const hoursOf = async (sinceMs: number, untilMs: number | null, siteIds?: string[]) => {
      const query = { orgId, sinceMs, untilMs, ...(siteIds === undefined ? {} : { siteIds }) }
      const { byHour, bySite } = await store.accessLogs.counts(query)
      return [byHour.map((row) => row.agent.requests + row.person.requests), bySite.map((row) => row.siteId)]
    }
    expect(await hoursOf(0, null)).toEqual([
      [3, 3],
      ['blog', 'shop'],
    ])
    expect(await hoursOf(noon, null)).toEqual([[3], ['blog', 'shop']])
    expect(await hoursOf(0, noon)).toEqual([[3], ['blog', 'shop']])
    expect(await hoursOf(0, null, ['blog'])).toEqual([[1, 1], ['blog']])
    expect(await hoursOf(0, null, ['none', ''])).toEqual([[], []])
  },
  async 'drains and logs that are not read for long become sums, and so do old hours'({ store, orgId }) {
    for (const source of ['drain_1', 'drain_2', 'drain_3'])
      await store.events.append(linesBatch(orgId, someLog, 0, 8, { source, isDrain: true }))
    await store.events.append(linesBatch(orgId, someLog, 0, 8, { source: 'log_a' }))
    const listed = async () =>
      (await store.accessLogs.sources(orgId))
        .map(({ source, lines, stored }) => `${source} ${lines} ${stored}`)
        .toSorted()
    expect(await listed()).toEqual(['(drains) 24 6', 'log_a 8 2'])
    const expire = async (days: number, hoursBefore = 0) => {
      const now = noon + days * dayMs
      for (;;) if ((await store.accessLogs.expire({ orgId, beforeMs: hoursBefore, now })).done) return
    }
    await expire(6)
    expect(
      await resultOf(store, linesBatch(orgId, someLog, 0, 8, { source: 'drain_1', isDrain: true })),
    ).toEqual({
      state: 'known',
      position: 80,
      tail: tailOf(80),
      stored: 0,
      deduped: 2,
      rejected: 0,
    })
    await expire(8)
    expect(await store.accessLogs.position({ orgId, siteId: 'shop', source: 'drain_1' })).toBeNull()
    expect(await listed()).toEqual(['(drains) 24 6', 'log_a 8 2'])
    await store.events.append(linesBatch(orgId, someLog, 0, 4, { source: 'drain_4', isDrain: true }))
    await expire(401, noon)
    expect(await listed()).toEqual(['(drains) 28 7', '(older) 8 2'])
    const { byHour } = await store.accessLogs.counts({ orgId, ...allTime })
    expect(byHour.map((row) => row.hourMs)).toEqual([noon])
  },
  async 'the removal of a site removes its counts and positions'({ store, orgId }) {
    await store.events.append(linesBatch(orgId, someLog, 0, 8))
    await store.events.append(linesBatch(orgId, someLog, 0, 8, { siteId: 'blog' }))
    const audit = makeAudit(orgId)
    await store.events.removeSite({ orgId, siteId: 'shop', audit })
    expect((await store.accessLogs.sources(orgId)).map(({ siteId }) => siteId)).toEqual(['blog'])
    const { bySite } = await store.accessLogs.counts({ orgId, ...allTime })
    expect(bySite.map(({ siteId }) => siteId)).toEqual(['blog'])
    expect(await resultOf(store, linesBatch(orgId, someLog, 0, 8))).toMatchObject({ state: 'stored' })
  },
  async 'a site beyond the limit of the organization is rejected, also without an event'({ store, orgId }) {
    const sites = Array.from({ length: 1_000 }, (_, n) => makeEvent(`${n}`, { siteId: `site-${n}` }))
    await store.events.append(makeBatch(orgId, sites))
    const people = someLog.filter(({ kind }) => kind === 'person')
    const error = await failure(store.events.append(linesBatch(orgId, people, 0, 2)))
    expect([error.kind, error.message]).toEqual(['conflict', 'the organization has too many sites for shop'])
    expect(await resultOf(store, linesBatch(orgId, people, 0, 2, { siteId: 'site-7' }))).toMatchObject({
      state: 'stored',
    })
  },
}

export const accessLogNodeCases: NodeCases = {
  async 'two nodes that read one log at once store each line once'({ store, another, orgId }) {
    const long = Array.from({ length: 400 }, (_, index) => someLog[index % someLog.length]!)
    const sums = { stored: 0, accepted: 0 }
    const read = async (node: Store, size: number): Promise<void> => {
      for (let position = 0; position < long.length;) {
        const last = Math.min(long.length, position + size)
        const { accepted, access } = await node.events.append(linesBatch(orgId, long, position, last))
        if (access!.state === 'stored') sums.stored += last - position
        sums.accepted += accepted
        position = access!.state === 'known' ? last : access!.position / lineBytes
      }
    }
    await Promise.all([read(store, 7), read(another, 11), read(another, 16)])
    expect(sums).toEqual({ stored: 400, accepted: 200 })
    await expectWhole(another, orgId, long)
    await expectWhole(store, orgId, long)
  },
}

/** Edits of rows behind the store's back, in SQL of both engines: ORG is the organization; and what `verify` names. */
export const accessEdits: { [edit: string]: { sql: string; named: string } } = {
  'an hour counted up': {
    sql: "UPDATE access_hour SET requests = requests + 1 WHERE org_id = 'ORG' AND kind = 'person'",
    named: 'requests of kind person of site shop, hour 2026-06-01T11:00:00.000Z: is not what was written',
  },
  'bytes of an hour': {
    sql: "UPDATE access_hour SET bytes = bytes + 1, checksum = checksum + 7 WHERE org_id = 'ORG' AND kind = 'bot'",
    named: 'access logs of site shop: the hours have 1 more bytes than the logs',
  },
  'an hour deleted': {
    sql: "DELETE FROM access_hour WHERE org_id = 'ORG' AND kind = 'bot'",
    named: 'access logs of site shop: the hours have 1 fewer requests of kind bot than the logs',
  },
  'an hour below zero': {
    sql: "UPDATE access_hour SET requests = -5 WHERE org_id = 'ORG' AND kind = 'bot'",
    named: 'requests of kind bot of site shop, hour 2026-06-01T11:00:00.000Z: is negative',
  },
  'the position of a log': {
    sql: "UPDATE access_source SET position = position + 10 WHERE org_id = 'ORG'",
    named: 'access log /var/log/access.log of site shop: its row is not the one that was written',
  },
  'the lines of a log': {
    sql: "UPDATE access_source SET lines = lines + 1 WHERE org_id = 'ORG'",
    named: 'access log /var/log/access.log of site shop: has 9 lines, but counts 8',
  },
  'a log deleted': {
    sql: "DELETE FROM access_source WHERE org_id = 'ORG'",
    named: 'access logs of site shop: the hours have 2 more requests of kind agent than the logs',
  },
}
