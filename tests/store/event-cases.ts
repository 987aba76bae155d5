/** Conformance of storing events: dedupe, guard rails, groups, texts, watching, removing a site. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { EventRecord } from '../../db/contract/store.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import { failure, writesOnce, type Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

const everyEvent = { filter: {}, limit: 200, before: null, ceilingSeq: null }

export const appendCases: Cases = {
  async 'an event comes back as it was, and only in its organization'({ store, orgId }) {
    const event = makeEvent('evt_1', { json: '{"id":"evt_1","n":12345678901234567890.10}', durationMs: 0.25 })
    const result = await store.events.append(makeBatch(orgId, [event]))
    expect(result).toEqual({ accepted: 1, deduped: 0, rejected: [] })
    const stored = await store.events.byId({ orgId, id: 'evt_1' })
    expect(stored).toMatchObject({
      seq: await store.events.lastSeq(orgId),
      occurredAtMs: event.occurredAtMs,
      receivedAtMs: event.occurredAtMs + 1,
      json: event.json,
    })
    expect(await store.events.byId({ orgId, id: 'evt_2' })).toBeNull()
    expect(await store.events.byId({ orgId: 'org_other', id: 'evt_1' })).toBeNull()
  },
  async 'the first of equal ids stands: inside a batch, across batches, across a reopening'({ open }) {
    using dir = tempDir()
    const store = await open(dir.path)
    const batch = (...events: EventRecord[]) => makeBatch('org_a', events)
    const first = makeEvent('a', { json: '{"first":true}' })
    const second = makeEvent('a', { json: '{"first":false}', siteId: 'elsewhere' })
    const inside = await store.events.append(batch(first, second, makeEvent('b')))
    expect(inside).toMatchObject({ accepted: 2, deduped: 1, rejected: [] })
    const across = await store.events.append(batch(second))
    expect(across).toEqual({ accepted: 0, deduped: 1, rejected: [] })
    await store.close()
    const again = await open(dir.path)
    expect(await again.events.append(batch(second))).toMatchObject({ accepted: 0, deduped: 1 })
    expect((await again.events.byId({ orgId: 'org_a', id: 'a' }))?.json).toBe(first.json)
    expect(await again.events.overview('org_a')).toEqual({ total: 2, byType: { 'agent.detected': 2 } })
    await again.close()
  },
  async 'equal ids in two organizations are two events'({ store, orgId }) {
    const otherOrgId = makeOrg().id
    expect(await store.events.append(makeBatch(orgId, [makeEvent('same')]))).toMatchObject({ accepted: 1 })
    expect(await store.events.append(makeBatch(otherOrgId, [makeEvent('same')]))).toMatchObject({
      accepted: 1,
    })
    expect((await store.events.overview(otherOrgId)).total).toBe(1)
  },
  async 'the same batch sent many times at once is stored once'({ store, orgId }) {
    const events = Array.from({ length: 50 }, (_, n) => makeEvent(`e${n}`))
    const results = await Promise.all(
      Array.from({ length: 20 }, () => store.events.append(makeBatch(orgId, events))),
    )
    expect(results.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(50)
    for (const { accepted, deduped } of results) expect(accepted + deduped).toBe(50)
    expect((await store.events.overview(orgId)).total).toBe(50)
  },
  async 'arrival numbers rise'({ store, orgId }) {
    await store.events.append(makeBatch(orgId, [makeEvent('1')]))
    const afterOne = await store.events.lastSeq(orgId)
    await store.events.append(makeBatch(orgId, [makeEvent('2'), makeEvent('3')]))
    const afterTwo = await store.events.lastSeq(orgId)
    expect(afterTwo).toBeGreaterThan(afterOne)
    const seqs = await Promise.all(
      ['1', '2', '3'].map(async (id) => (await store.events.byId({ orgId, id }))?.seq ?? 0),
    )
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
    expect(seqs[2]).toBe(afterTwo)
  },
  async 'a batch that fails takes no other of its group with it'({ store, orgId }) {
    const broken = makeEvent('broken', { type: null as never })
    const good = [store.events.append(makeBatch(orgId, [makeEvent('g0')]))]
    const bad = failure(store.events.append(makeBatch(orgId, [makeEvent('half'), broken])))
    const bads = [1, 2, 3].map((n) =>
      failure(store.events.append(makeBatch(orgId, [makeEvent(`half${n}`), broken]))),
    )
    good.push(...[1, 2, 3].map((n) => store.events.append(makeBatch(orgId, [makeEvent(`g${n}`)]))))
    for (const result of await Promise.all(good)) expect(result).toMatchObject({ accepted: 1 })
    for (const error of await Promise.all([bad, ...bads])) expect(error.kind).toBe('internal')
    const page = await store.events.page({ orgId, ...everyEvent })
    expect(page.events.map(({ json }) => json).toSorted()).toEqual(
      ['g0', 'g1', 'g2', 'g3'].map((id) => `{"id":"${id}"}`),
    )
    expect((await store.events.overview(orgId)).total).toBe(4)
  },
  async 'any JSON text comes back byte for byte'({ store }) {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.json(), { minLength: 1, maxLength: 20 }),
        fc.boolean(),
        async (texts, spaced) => {
          const orgId = makeOrg().id
          const sentTexts = texts.map((text) =>
            spaced ? JSON.stringify(JSON.parse(text), null, '\t') : text,
          )
          const events = sentTexts.map((json, n) => makeEvent(`e${n}`, { json }))
          await store.events.append(makeBatch(orgId, events))
          const tail = await store.events.tail({ orgId, filter: {}, afterSeq: 0, limit: 200 })
          expect(tail.events.map(({ json }) => json)).toEqual(sentTexts)
        },
      ),
      { numRuns: runs(30) },
    )
  },
  async 'pressure tells what waits and is nothing at rest'({ store, orgId }) {
    const event = makeEvent('e')
    const append = store.events.append(makeBatch(orgId, [event]))
    expect(store.events.pressure().queuedBytes).toBeGreaterThanOrEqual(event.json.length)
    await append
    await store.events.append(makeBatch(orgId, [makeEvent('f')]))
    await Bun.sleep(0)
    expect(store.events.pressure()).toEqual({ queuedBytes: 0, oldestMs: 0, full: false })
  },
}

export const watchCases: Cases = {
  async 'watchers hear of organizations that got events, until they stop'({ store, orgId }) {
    const heard: string[] = []
    const stop = store.events.watch((orgIds) => heard.push(...orgIds))
    await store.events.append(makeBatch(orgId, [makeEvent('a')]))
    expect(heard).toContain(orgId) // a store that polls also announces other organizations, and some again
    stop()
    const heardBefore = heard.length
    await store.events.append(makeBatch(orgId, [makeEvent('b')]))
    expect(heard.length).toBe(heardBefore)
  },
  async 'the tail gives what arrived after a number, and passes over what the filter leaves out'({
    store,
    orgId,
  }) {
    const types = ['x.a', 'y.b', 'x.c', 'y.d', 'y.e']
    await store.events.append(
      makeBatch(
        orgId,
        types.map((type) => makeEvent(type, { type })),
      ),
    )
    const newest = await store.events.lastSeq(orgId)
    const query = { orgId, filter: { types: ['x.*'] }, limit: 2 }
    const first = await store.events.tail({ ...query, afterSeq: 0, limit: 1 })
    expect(first.events.map(({ json }) => json)).toEqual(['{"id":"x.a"}'])
    const second = await store.events.tail({ ...query, afterSeq: first.lastSeq })
    expect(second.events.map(({ json }) => json)).toEqual(['{"id":"x.c"}'])
    expect(second.lastSeq).toBe(newest)
    expect(await store.events.tail({ ...query, afterSeq: newest })).toEqual({ events: [], lastSeq: newest })
  },
  async 'the tail and a count leave out what certain keys sent, and go on behind it'({ store, orgId }) {
    const send = (keyId: string, ids: string[]) =>
      store.events.append({
        ...makeBatch(
          orgId,
          ids.map((id) => makeEvent(id)),
        ),
        keyId,
      })
    await send('key_live', ['a', 'b'])
    await send('import', ['c', 'd', 'e'])
    await send('key_live', ['f'])
    const ceilingSeq = await store.events.lastSeq(orgId)
    const query = { orgId, filter: {}, afterSeq: 0, exceptKeys: ['import', 'never sent'] }
    const tail = await store.events.tail({ ...query, limit: 10 })
    expect(tail.events.map(({ json }) => json)).toEqual(['{"id":"a"}', '{"id":"b"}', '{"id":"f"}'])
    expect(tail.lastSeq).toBe(ceilingSeq)
    expect((await store.events.tail({ ...query, limit: 1, afterSeq: 2 })).events[0]?.seq).toBe(ceilingSeq)
    let counted = { count: 0, lastSeq: 0 }
    while (counted.lastSeq < ceilingSeq) {
      const part = await store.events.count({ ...query, afterSeq: counted.lastSeq, ceilingSeq })
      counted = { count: counted.count + part.count, lastSeq: part.lastSeq }
    }
    expect(counted).toEqual({ count: 3, lastSeq: ceilingSeq })
    const blocked = { ...query, filter: { outcomes: ['blocked'] }, ceilingSeq }
    expect((await store.events.count(blocked)).count).toBe(0)
  },
  async 'following the tail during appends gives every event once, in order of arrival'({ store, orgId }) {
    const numbers = Array.from({ length: 40 }, (_, n) => n)
    const sending = Promise.all(
      numbers.map((n) => store.events.append(makeBatch(orgId, [makeEvent(`${n}-a`), makeEvent(`${n}-b`)]))),
    )
    const seqs: number[] = []
    let afterSeq = 0
    while (seqs.length < 80) {
      const tail = await store.events.tail({ orgId, filter: {}, afterSeq, limit: 7 })
      seqs.push(...tail.events.map(({ seq }) => seq))
      afterSeq = tail.lastSeq
    }
    await sending
    expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b))
  },
}

export const removeCases: Cases = {
  async 'removing a site takes its events alone, with one audit entry'({ store, orgId }) {
    const demo = [makeEvent('d1', { siteId: 'demo', type: 'demo.seen' }), makeEvent('d2', { siteId: 'demo' })]
    await store.events.append(makeBatch(orgId, [...demo, makeEvent('kept')]))
    const newest = await store.events.lastSeq(orgId)
    const audit = makeAudit(orgId, { action: 'demo.removed' })
    expect(
      await writesOnce(store, audit, () => store.events.removeSite({ orgId, siteId: 'demo', audit })),
    ).toBe(2)
    expect(await store.events.byId({ orgId, id: 'd1' })).toBeNull()
    expect(await store.events.overview(orgId)).toEqual({ total: 1, byType: { 'agent.detected': 1 } })
    const again = await store.events.append(makeBatch(orgId, demo))
    expect(again).toMatchObject({ accepted: 2, deduped: 0 })
    expect(await store.events.lastSeq(orgId)).toBeGreaterThan(newest)
  },
  async 'a count that was asked for before is another after each change'({ store, orgId }) {
    const counts = async () => {
      const time = { orgId, sinceMs: 0, untilMs: null }
      const [metrics, breakdown, durations, distinct, overview] = await Promise.all([
        store.events.metrics({ ...time, rowsMax: 10 }),
        store.events.breakdown({ ...time, by: 'vendor', stepMs: null }),
        store.events.durations({ ...time, stepMs: null }),
        store.events.distinct({ ...time, of: 'session', step: 'day' }),
        store.events.overview(orgId),
      ])
      const sum = ({ rows }: { rows: { count: number }[] }) =>
        rows.reduce((total, { count }) => total + count, 0)
      return [metrics.total, sum(breakdown), sum(durations), sum(distinct), overview.total]
    }
    const timed = { tool: 'cart.add', durationMs: 5, vendor: 'GPTBot' }
    const events = ['one', 'two', 'three'].map((id) =>
      makeEvent(id, { ...timed, sessionId: id, siteId: id === 'one' ? 'demo' : 'kept' }),
    )
    for (const [index, event] of events.entries()) {
      expect(await counts()).toEqual(Array<number>(5).fill(index))
      await store.events.append(makeBatch(orgId, [event]))
      expect(await counts()).toEqual(Array<number>(5).fill(index + 1))
    }
    await store.events.removeSite({ orgId, siteId: 'demo', audit: makeAudit(orgId) })
    expect(await counts()).toEqual(Array<number>(5).fill(2))
    const erase = { orgId, sessionIds: ['two'], subjects: [] }
    let cursor = (await store.events.erase({ ...erase, audit: makeAudit(orgId), cursor: null })).next
    while (cursor !== null) cursor = (await store.events.erase({ ...erase, audit: null, cursor })).next
    expect(await counts()).toEqual(Array<number>(5).fill(1))
  },
  async 'counts of values, types and outcomes that were asked for, over days that were asked for before'({
    store,
    orgId,
  }) {
    const dayMs = 86_400_000
    const events = Array.from({ length: 96 }, (_, n) =>
      makeEvent(`n${n}`, {
        occurredAtMs: noon - n * 3_600_000,
        type: ['tool.executed', 'agent.detected'][n % 2]!,
        outcome: ['success', 'error', 'blocked'][n % 3]!,
        vendor: `v${n % 4}`,
        name: `n${n % 5}`,
      }),
    )
    const range = { orgId, sinceMs: noon - 3 * dayMs, untilMs: noon - 3_600_000 }
    const edges = [range.sinceMs, noon - dayMs - 3_600_000]
    const agrees = async (stored: EventRecord[]) => {
      const counted = stored.filter(
        (event) => event.occurredAtMs >= range.sinceMs && event.occurredAtMs < range.untilMs,
      )
      for (const [field, values] of [
        ['vendor', ['v1', 'v2', 'nobody']],
        ['name', ['n3']],
      ] as const) {
        const query = { ...range, by: field, stepMs: null, edges }
        const expected = counted.map(
          (event) => `${event.occurredAtMs < edges[1]! ? 0 : 1} ${event[field]} ${event.outcome}`,
        )
        const rowsFor = async (filter: object) =>
          (await store.events.breakdown({ ...query, ...filter })).rows.flatMap(
            ({ value, outcome, startMs, count }) =>
              Array<string>(count).fill(`${edges.indexOf(startMs)} ${value} ${outcome}`),
          )
        expect((await rowsFor({})).sort()).toEqual(expected.toSorted())
        const isAsked = (text: string) => values.some((value) => text.includes(` ${value} `))
        expect((await rowsFor({ values: [...values] })).sort()).toEqual(expected.filter(isAsked).sort())
      }
      const someFilter = { types: ['tool.*'], outcomes: ['error', 'none'] }
      const { total, byType } = await store.events.metrics({ ...range, ...someFilter, rowsMax: 0 })
      const matching = counted.filter(({ type, outcome }) => type === 'tool.executed' && outcome === 'error')
      expect([total, byType]).toEqual([matching.length, { 'tool.executed': matching.length }])
    }
    for (let end = 24; end <= 96; end += 24) {
      await store.events.append(makeBatch(orgId, events.slice(end - 24, end)))
      if (end > 24) await agrees(events.slice(0, end))
    }
  },
  async 'removing a site takes what it pushed, and nothing of another site'({ store, orgId }) {
    const limits = { sitesMax: 9, toolsMax: 9, versionsMax: 9, now: noon }
    for (const siteId of ['demo', 'kept']) {
      const tools = [{ name: 'cart.add', digest: siteId, json: '{"name":"cart.add"}' }]
      await store.registry.pushTools({ orgId, siteId, tools, replace: false, ...limits })
      const memory = { digest: siteId, json: '{}', score: 1, computed: false }
      await store.registry.pushMemory({ orgId, siteId, ...memory, ...limits })
    }
    const audit = makeAudit(orgId, { action: 'demo.removed' })
    expect(await store.events.removeSite({ orgId, siteId: 'demo', audit })).toBe(0)
    const registryQuery = { orgId, siteIds: [], after: null, limit: 9, bytesMax: 1_000 }
    const { tools } = await store.registry.tools({ ...registryQuery, withRemoved: true })
    expect(tools.map(({ siteId }) => siteId)).toEqual(['kept'])
    const { memories } = await store.registry.memories(registryQuery)
    expect(memories.map(({ siteId }) => siteId)).toEqual(['kept'])
    const memory = { orgId, siteId: 'demo' }
    expect(await store.registry.memoryVersions({ ...memory, limit: 9 })).toEqual([])
    expect(await store.registry.tool({ ...memory, name: 'cart.add', limit: 9 })).toBeNull()
  },
}

function distinct(member: 'type' | 'outcome' | 'siteId', count: number): EventRecord[] {
  return Array.from({ length: count }, (_, n) => makeEvent(`${member}${n}`, { [member]: `v${n}` }))
}

export const guardRailCases: Cases = {
  async 'beyond 1,000 types, 100 outcomes or 1,000 sites an event is refused, and others are not'({ store }) {
    for (const [member, max] of [
      ['type', 1_000],
      ['outcome', 100],
      ['siteId', 1_000],
    ] as const) {
      const orgId = makeOrg().id
      const filled = await store.events.append(makeBatch(orgId, distinct(member, max)))
      expect(filled).toMatchObject({ accepted: max, rejected: [] })
      const moreEvents = [
        makeEvent('known', { [member]: 'v1' }),
        makeEvent('beyond', { [member]: 'one-more' }),
        makeEvent('beyond', { [member]: 'v2' }), // the rejected one does not count as a first
        makeEvent(`${member}1`, { [member]: 'one-more' }), // stored already: a resend
      ]
      const result = await store.events.append(makeBatch(orgId, moreEvents))
      const railed = { index: 1, member, id: 'beyond', json: moreEvents[1]!.json }
      expect(result).toMatchObject({ accepted: 2, deduped: 1, rejected: [railed] })
      const elsewhere = await store.events.append(makeBatch(makeOrg().id, moreEvents.slice(1, 2)))
      expect(elsewhere).toMatchObject({ accepted: 1, rejected: [] })
    }
  },
  async 'a batch that was undone leaves room for other names'({ store, orgId }) {
    await store.events.append(makeBatch(orgId, distinct('outcome', 99)))
    const undone = [
      makeEvent('r', { outcome: 'v99' }),
      makeEvent('broken', { outcome: 'v1', type: null as never }),
    ]
    expect((await failure(store.events.append(makeBatch(orgId, undone)))).kind).toBe('internal')
    const result = await store.events.append(makeBatch(orgId, [makeEvent('ok', { outcome: 'last' })]))
    expect(result).toMatchObject({ accepted: 1, rejected: [] })
  },
}
