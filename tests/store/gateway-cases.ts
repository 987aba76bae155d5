/** Conformance of counting, searching, sessions, the registry and ingest counts. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { EventPosition, EventRecord, Store } from '../../db/contract/store.ts'
import type { ScopeCount } from '../../db/contract/ingest-counts.ts'
import { makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import { countAll, type Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

async function searchAll(store: Store, orgId: string, text: string, limit: number): Promise<string[]> {
  const foundIds: string[] = []
  let position: EventPosition | null = null
  let ceilingSeq: number | null = null
  do {
    const query = { orgId, filter: { text }, limit, before: position, ceilingSeq }
    const page: Awaited<ReturnType<Store['events']['page']>> = await store.events.page(query)
    expect(page.events.length).toBeLessThanOrEqual(limit)
    foundIds.push(...page.events.map(({ json }) => json))
    position = page.next
    ceilingSeq = page.ceilingSeq
  } while (position !== null)
  return foundIds
}

const texted = (n: number, text: string): EventRecord =>
  makeEvent(`t${n}`, {
    occurredAtMs: noon + (n % 5),
    outcome: n % 3 === 0 ? 'blocked' : 'success',
    json: JSON.stringify({ id: `t${n}`, text }),
  })

export const countCases: Cases = {
  async 'counts what a walk gives, up to the ceiling'({ store, orgId }) {
    const events = Array.from({ length: 600 }, (_, n) => texted(n, `text ${n}`))
    await store.events.append(makeBatch(orgId, events.slice(0, 400)))
    const ceilingSeq = await store.events.lastSeq(orgId)
    await store.events.append(makeBatch(orgId, events.slice(400)))
    expect(await countAll(store, orgId, {}, ceilingSeq)).toBe(400)
    expect(await countAll(store, orgId, { outcomes: ['blocked'] }, ceilingSeq)).toBe(134)
    expect(await countAll(store, orgId, { sinceMs: noon + 1, untilMs: noon + 3 }, ceilingSeq)).toBe(160)
    expect(await countAll(store, orgId, { text: 'TEXT 39' }, ceilingSeq)).toBe(11) // 39 and 390 to 399
    expect(await countAll(store, orgId, {}, await store.events.lastSeq(orgId))).toBe(600)
    expect(await countAll(store, makeOrg().id, {}, 5)).toBe(0)
  },
  async 'a search finds every event with the text, once, newest first, in pages of any size'({ store }) {
    const word = fc.constantFrom('Ärger', 'ärgert', 'x"y', 'nothing', 'a\\b')
    await fc.assert(
      fc.asyncProperty(
        fc.array(word, { minLength: 1, maxLength: 30 }),
        word,
        fc.integer({ min: 1, max: 7 }),
        async (words, searchText, limit) => {
          const orgId = makeOrg().id
          const events = words.map((text, n) => texted(n, `so ${text} it is`))
          await store.events.append(makeBatch(orgId, events))
          const expected = events
            .map((event, arrival) => ({ event, arrival, text: words[arrival]! }))
            .filter(({ text }) => text.toUpperCase().includes(searchText.toUpperCase()))
            .toSorted((a, b) => b.event.occurredAtMs - a.event.occurredAtMs || b.arrival - a.arrival)
            .map(({ event }) => event.json)
          expect(await searchAll(store, orgId, searchText.toUpperCase(), limit)).toEqual(expected)
        },
      ),
      { numRuns: runs(40) },
    )
  },
}

const sessionEvent = (n: number, session: string, trust: string): EventRecord => {
  const agent = { class: 'dom', vendor: `v${n}`, trust }
  const fields = { siteId: 'shop', sessionId: session, type: 'agent.detected', outcome: 'success' }
  const json = JSON.stringify({ id: `s${n}`, ...fields, agent })
  return makeEvent(`s${n}`, { ...fields, ...agent, occurredAtMs: noon + n, json })
}

export const sessionCases: Cases = {
  async 'a session is listed once, at its newest event, with the class of its highest trust'({
    store,
    orgId,
  }) {
    const trusts = ['detected', 'verified', 'declared', 'verified', 'detected', 'detected']
    const events = trusts.map((trust, n) => sessionEvent(n, n % 2 === 0 ? 'even' : 'odd', trust))
    await store.events.append(makeBatch(orgId, events))
    const query = {
      orgId,
      filter: {},
      limit: 1,
      before: null,
      ceilingSeq: null,
      eventsMax: 100,
      budgetMs: 1_000,
    }
    const first = await store.sessions.page(query)
    expect(first.sessions).toMatchObject([
      { id: 'odd', events: 3, trust: 'verified', vendor: 'v3', firstSeenAtMs: noon + 1 },
    ])
    const remainingPage = await store.sessions.page({
      ...query,
      limit: 9,
      before: first.next,
      ceilingSeq: first.ceilingSeq,
    })
    expect(remainingPage.sessions).toMatchObject([
      { id: 'even', events: 3, trust: 'declared', vendor: 'v2', isCut: false },
    ])
    expect(remainingPage.next).toBeNull()
    const cut = await store.sessions.page({ ...query, limit: 9, eventsMax: 2 })
    expect(cut.sessions.map(({ events: counted, isCut }) => [counted, isCut])).toEqual([
      [2, true],
      [2, true],
    ])
  },
  async 'a story goes from the first event to the last in pages; an unknown session has none'({
    store,
    orgId,
  }) {
    const events = Array.from({ length: 23 }, (_, n) => sessionEvent(n, 'one', 'detected'))
    await store.events.append(makeBatch(orgId, events.toReversed()))
    const storyIds: string[] = []
    let position: EventPosition | null = null
    do {
      const query = { orgId, sessionId: 'one', after: position, ceilingSeq: null, limit: 5, eventsMax: 100 }
      const story: Awaited<ReturnType<Store['sessions']['story']>> = await store.sessions.story(query)
      storyIds.push(...story!.events.map(({ json }) => json))
      position = story!.next
    } while (position !== null)
    expect(storyIds).toEqual(events.map(({ json }) => json))
    const unknown = { orgId, sessionId: 'two', after: null, ceilingSeq: null, limit: 5, eventsMax: 100 }
    expect(await store.sessions.story(unknown)).toBeNull()
  },
}

const tool = (name: string, digest: string) => ({ name, digest, json: `{"name":"${name}","v":"${digest}"}` })

export const registryCases: Cases = {
  async 'tools: only changes make versions, only the newest are kept'({ store, orgId }) {
    const limits = { sitesMax: 2, toolsMax: 3, versionsMax: 3 }
    const push = (tools: ReturnType<typeof tool>[], options = {}) =>
      store.registry.pushTools({
        orgId,
        siteId: 'shop',
        tools,
        replace: false,
        now: noon,
        ...limits,
        ...options,
      })
    expect(await push([tool('a', '1'), tool('b', '1')])).toEqual({
      added: 2,
      changed: 0,
      removed: 0,
      restored: 0,
    })
    expect(await push([tool('a', '1')])).toEqual({ added: 0, changed: 0, removed: 0, restored: 0 })
    expect(await push([tool('a', '2')], { replace: true })).toEqual({
      added: 0,
      changed: 1,
      removed: 1,
      restored: 0,
    })
    expect(await push([tool('b', '1')])).toMatchObject({ restored: 1 })
    const history = await store.registry.tool({ orgId, siteId: 'shop', name: 'b', limit: 10 })
    expect(history?.versions.map(({ change, version }) => [change, version])).toEqual([
      ['restored', 3],
      ['removed', 2],
      ['added', 1],
    ])
    for (const digest of ['3', '4', '5']) await push([tool('b', digest)])
    const toolHistory = await store.registry.tool({ orgId, siteId: 'shop', name: 'b', limit: 10 })
    expect(toolHistory?.versions.map(({ version }) => version)).toEqual([6, 5, 4])
    expect(toolHistory?.tool).toMatchObject({
      version: 6,
      firstAtMs: noon,
      removedAtMs: null,
      json: tool('b', '5').json,
    })
  },
  async 'tools: beyond a limit nothing of a push is stored'({ store, orgId }) {
    const limits = { sitesMax: 1, toolsMax: 2, versionsMax: 3, replace: false, now: noon }
    await store.registry.pushTools({ orgId, siteId: 'shop', tools: [tool('a', '1')], ...limits })
    const oversizedPush = {
      orgId,
      siteId: 'shop',
      tools: [tool('a', '2'), tool('b', '1'), tool('c', '1')],
      ...limits,
    }
    expect(await store.registry.pushTools(oversizedPush)).toEqual({ over: 'tools' })
    expect(
      await store.registry.pushTools({ ...oversizedPush, siteId: 'blog', tools: [tool('a', '1')] }),
    ).toEqual({
      over: 'sites',
    })
    const query = { orgId, siteIds: [], withRemoved: true, after: null, limit: 10, bytesMax: 1_000 }
    expect((await store.registry.tools(query)).tools).toMatchObject([
      { siteId: 'shop', name: 'a', version: 1 },
    ])
  },
  async 'tools page by site and name, by number and by bytes; organizations do not meet'({ store, orgId }) {
    const limits = { sitesMax: 9, toolsMax: 99, versionsMax: 3, replace: false, now: noon }
    for (const siteId of ['b', 'a'])
      await store.registry.pushTools({
        orgId,
        siteId,
        tools: ['y', 'x', 'z'].map((name) => tool(name, '1')),
        ...limits,
      })
    for (const size of [
      { limit: 2, bytesMax: 9_999 },
      { limit: 99, bytesMax: 30 },
    ]) {
      const names: string[] = []
      let position: { siteId: string; name: string } | null = null
      for (let hasMore = true; hasMore;) {
        const query = { orgId, siteIds: [], withRemoved: false, after: position, ...size }
        const page: Awaited<ReturnType<Store['registry']['tools']>> = await store.registry.tools(query)
        names.push(...page.tools.map(({ siteId, name }) => siteId + name))
        hasMore = page.hasMore
        position = page.tools.at(-1) ?? null
        if (position !== null) position = { siteId: position.siteId, name: position.name }
      }
      expect(names).toEqual(['ax', 'ay', 'az', 'bx', 'by', 'bz'])
    }
    const otherQuery = {
      orgId: makeOrg().id,
      siteIds: [],
      withRemoved: true,
      after: null,
      limit: 9,
      bytesMax: 999,
    }
    expect(await store.registry.tools(otherQuery)).toEqual({ tools: [], hasMore: false })
  },
  async 'memory: versions, the newest, one of old, and none'({ store, orgId }) {
    const limits = { sitesMax: 1, versionsMax: 2 }
    const push = (digest: string, siteId = 'shop') =>
      store.registry.pushMemory({
        orgId,
        siteId,
        digest,
        json: `{"d":"${digest}"}`,
        score: 50,
        computed: true,
        now: noon,
        ...limits,
      })
    expect([await push('1'), await push('1'), await push('2'), await push('3')]).toEqual([
      'added',
      'same',
      'changed',
      'changed',
    ])
    expect(await push('1', 'blog')).toBe('over')
    const read = (version: number | null) => store.registry.memory({ orgId, siteId: 'shop', version })
    expect(await read(null)).toMatchObject({
      version: 3,
      json: '{"d":"3"}',
      computed: true,
      score: 50,
      bytes: 9,
    })
    expect(await read(2)).toMatchObject({ version: 2, json: '{"d":"2"}' })
    expect([await read(1), await read(4)]).toEqual([null, null])
    const versions = await store.registry.memoryVersions({ orgId, siteId: 'shop', limit: 9 })
    expect(versions.map(({ version }) => version)).toEqual([3, 2])
    const list = await store.registry.memories({
      orgId,
      siteIds: ['shop'],
      after: null,
      limit: 5,
      bytesMax: 1,
    })
    expect([list.memories.length, list.hasMore]).toEqual([1, false])
  },
}

export const ingestCountCases: Cases = {
  async 'counts add up by hour and key; old ones go'({ store, orgId }) {
    const hourMs = 3_600_000
    const count = (hour: number, fields = {}) => ({
      orgId,
      keyId: 'key_a',
      hourStartMs: hour * hourMs,
      requests: 1,
      refused: 0,
      accepted: 5,
      deduped: 2,
      rejected: 1,
      aheadMaxMs: 10,
      behindMinMs: 100 as number | null,
      ...fields,
    })
    const add = (counts: ReturnType<typeof count>[], keptSinceMs = 0) =>
      store.ingestCounts.add({ counts, keptSinceMs })
    await add([count(100), count(101, { keyId: 'key_b', behindMinMs: null })])
    await add([
      count(100, { aheadMaxMs: 3, behindMinMs: 40 }),
      count(101, { keyId: 'key_b', behindMinMs: 7 }),
    ])
    const list = (sinceMs: number) => store.ingestCounts.list({ orgId, sinceMs })
    expect(await list(0)).toEqual([
      count(100, { requests: 2, accepted: 10, deduped: 4, rejected: 2, behindMinMs: 40 }),
      count(101, { keyId: 'key_b', requests: 2, accepted: 10, deduped: 4, rejected: 2, behindMinMs: 7 }),
    ])
    expect((await list(101 * hourMs)).length).toBe(1)
    await add([count(102)], 101 * hourMs)
    expect((await list(0)).map(({ hourStartMs }) => hourStartMs / hourMs)).toEqual([101, 102])
    expect(await store.ingestCounts.list({ orgId: makeOrg().id, sinceMs: 0 })).toEqual([])
  },
  async 'counts by scope add up, in the transaction of a batch or without one, and names cannot fill the disk'({
    store,
    orgId,
  }) {
    const hourMs = 3_600_000
    const count = (scope: string, fields: Partial<ScopeCount> = {}): ScopeCount => {
      return { scope, mapped: 0, modelCalls: 0, leftOut: 0, refused: 0, ...fields }
    }
    const numbers = { rejected: 1, aheadMaxMs: 0, behindMinMs: 0, keptSinceMs: 0 }
    const scopes = [count('ai', { mapped: 2, refused: 1 }), count('', { modelCalls: 3 })]
    const batch = makeBatch(orgId, [makeEvent('of-scope')])
    await store.events.append({ ...batch, count: { ...numbers, scopes } })
    await store.events.append({ ...batch, count: { ...numbers, scopes: [count('ai', { mapped: 1 })] } })
    const hourStartMs = batch.receivedAtMs - (batch.receivedAtMs % hourMs)
    const add = (counts: ScopeCount[], atMs = hourStartMs, keptSinceMs = 0) =>
      store.ingestCounts.add({
        counts: [],
        scopes: counts.map((scopeCount) => ({ ...scopeCount, orgId, hourStartMs: atMs })),
        keptSinceMs,
      })
    await add([count('ai', { mapped: -1, refused: 1 }), count('é\ufffd', { leftOut: 1 })])
    const ai = count('ai', { mapped: 2, refused: 2 })
    const listed = (sinceMs: number) => store.ingestCounts.scopes({ orgId, sinceMs })
    const remainingCounts = [count('', { modelCalls: 3 }), count('é\ufffd', { leftOut: 1 })]
    expect(await listed(0)).toEqual([ai, ...remainingCounts])
    // Three names have rows already.
    const manyCounts = Array.from({ length: 150 }, (_, n) =>
      count(`s${String(n).padStart(3, '0')}`, { mapped: 1 }),
    )
    await store.events.append({ ...batch, count: { ...numbers, scopes: manyCounts } })
    await add(manyCounts)
    const [otherScopes, ...namedScopes] = await listed(0)
    expect([otherScopes, namedScopes.length]).toEqual([count('(other)', { mapped: 106 }), 100])
    expect(namedScopes.filter(({ scope }) => scope.startsWith('s'))).toEqual(
      manyCounts.slice(0, 97).map((scopeCount) => ({ ...scopeCount, mapped: 2 })),
    )
    await add([count('later', { mapped: 1 })], hourStartMs + hourMs, hourStartMs + hourMs)
    expect(await listed(0)).toEqual([count('later', { mapped: 1 })])
    expect(await store.ingestCounts.scopes({ orgId: makeOrg().id, sinceMs: 0 })).toEqual([])
  },
  async 'times are told'({ store, orgId }) {
    const timesBefore = await store.times()
    await store.events.append(makeBatch(orgId, [makeEvent('timed')]))
    const timesAfter = await store.times()
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)
    expect(sum(timesAfter.append.counts)).toBe(sum(timesBefore.append.counts) + 1)
    expect(sum(timesAfter.commit.counts)).toBeGreaterThan(sum(timesBefore.commit.counts))
  },
}
