/** Conformance of robots.txt: versions by time, their limits, and the test of a text against stored requests. */
import { expect } from 'bun:test'
import type { SetRobots } from '../../db/contract/robots.ts'
import type { Store } from '../../db/contract/store.ts'
import { makeAudit, makeBatch, makeEvent, noon } from './make.ts'
import { failure, writesNothing, writesOnce, type Cases } from './subject.ts'

const hostile = `User-agent: *\nDisallow: /\u0000 \u2028 漢字 '; DROP TABLE org; -- $1 ?1`
const file = (path: string): string => `User-agent: *\nDisallow: ${path}\n`

function set(store: Store, orgId: string, fields: Partial<SetRobots> = {}) {
  const { siteId = 'shop', fromMs = noon } = fields
  const command = {
    orgId,
    siteId,
    fromMs,
    text: file('/'),
    now: noon,
    setBy: 'cli',
    sitesMax: 9,
    versionsMax: 9,
  }
  return store.robots.set({ ...command, audit: makeAudit(orgId), ...fields })
}

const hourMs = 3_600_000

export const robotsCases: Cases = {
  async 'a version is stored with its audit entry and read as it was set'({ store, orgId }) {
    const audit = makeAudit(orgId, { action: 'site.robots_set' })
    const result = await writesOnce(store, audit, () =>
      set(store, orgId, { text: hostile, setBy: 'user:u', audit }),
    )
    expect(result).toEqual({ state: 'stored', version: 1 })
    const robots = await store.robots.find({ orgId, siteId: 'shop', version: 1 })
    expect(robots).toEqual({
      siteId: 'shop',
      version: 1,
      fromMs: noon,
      setAtMs: noon,
      setBy: 'user:u',
      text: hostile,
      digest: Bun.SHA256.hash(hostile, 'hex'),
      bytes: Buffer.byteLength(hostile),
    })
    const { text, ...listed } = robots!
    expect(text).toBe(hostile)
    expect(await store.robots.list({ orgId, siteId: 'shop' })).toEqual([listed])
    expect(await store.robots.find({ orgId, siteId: 'shop', version: 2 })).toBeNull()
    expect(await store.robots.find({ orgId: 'org_other', siteId: 'shop', version: 1 })).toBeNull()
  },
  async 'the text that is in force already makes no version and no audit entry'({ store, orgId }) {
    await set(store, orgId)
    const again = () => set(store, orgId, { fromMs: noon + hourMs })
    expect(await writesNothing(store, orgId, again)).toEqual({ state: 'same', version: 1 })
    await set(store, orgId, { text: file('/b'), fromMs: noon + hourMs })
    // What was in force before may come back, and a version may lie between others.
    expect(await set(store, orgId, { fromMs: noon + 2 * hourMs })).toEqual({ state: 'stored', version: 3 })
    expect(await set(store, orgId, { fromMs: noon + hourMs / 2 })).toEqual({ state: 'same', version: 1 })
    const middleVersion = { text: file('/c'), fromMs: noon + hourMs / 2 }
    expect(await set(store, orgId, middleVersion)).toEqual({ state: 'stored', version: 4 })
    const versions = await store.robots.list({ orgId, siteId: 'shop' })
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 4, 1])
  },
  async 'two versions from the same time are a conflict'({ store, orgId }) {
    await set(store, orgId)
    const error = await writesNothing(store, orgId, () => failure(set(store, orgId, { text: file('/b') })))
    expect(error.kind).toBe('conflict')
  },
  async 'a site stores its newest versions, an organization a number of sites'({ store, orgId }) {
    for (let n = 0; n < 5; n++)
      await set(store, orgId, { text: file(`/${n}`), fromMs: noon + n * hourMs, versionsMax: 3 })
    const versions = await store.robots.list({ orgId, siteId: 'shop' })
    expect(versions.map(({ version }) => version)).toEqual([5, 4, 3])
    await set(store, orgId, { siteId: 'blog', sitesMax: 2 })
    const setOversized = () => set(store, orgId, { siteId: 'docs', sitesMax: 2 })
    expect(await writesNothing(store, orgId, setOversized)).toEqual({ state: 'over' })
    expect(
      await set(store, orgId, { siteId: 'blog', text: '', fromMs: noon + 1, sitesMax: 2 }),
    ).toMatchObject({
      state: 'stored',
    })
    const sites = await store.robots.sites(orgId)
    expect(sites.map(({ siteId, version }) => [siteId, version])).toEqual([
      ['blog', 2],
      ['shop', 5],
    ])
    await store.events.removeSite({ orgId, siteId: 'shop', audit: makeAudit(orgId) })
    expect((await store.robots.sites(orgId)).map(({ siteId }) => siteId)).toEqual(['blog'])
  },
  async 'a test counts the requests that a text would disallow, and those that were'({ store, orgId }) {
    const request = (id: string, name: string, page: string | null, fields: object = {}) =>
      makeEvent(id, {
        siteId: 'shop',
        type: 'agent.requested',
        vendor: `of ${name}`,
        name,
        page,
        ...fields,
      })
    const requests = [
      ...Array.from({ length: 400 }, (_, n) => request(`a${n}`, 'GPTBot', n % 4 === 0 ? '/b/1' : `/c/${n}`)),
      ...Array.from({ length: 100 }, (_, n) =>
        request(`b${n}`, 'ClaudeBot', '/b/2', { robots: 'disallowed' }),
      ),
      request('old', 'GPTBot', '/b/1', { occurredAtMs: noon - hourMs }),
      request('other site', 'GPTBot', '/b/1', { siteId: 'blog' }),
      request('other type', 'GPTBot', '/b/1', { type: 'agent.detected' }),
      request('no page', 'GPTBot', null, { robots: 'allowed' }),
      request('no name', 'Bot', '/b/3', { name: null, vendor: null }),
    ]
    await store.events.append(makeBatch(orgId, requests))
    const text = 'User-agent: GPTBot\nDisallow: /b/\n\nUser-agent: *\nDisallow: /b/3'
    const query = { orgId, siteId: 'shop', text, sinceMs: noon, untilMs: noon + 1 }
    const limits = { agentsMax: 9, pagesMax: 1, budgetMs: 10_000 }
    expect(await store.robots.test({ ...query, ...limits })).toEqual({
      requests: 502,
      disallowed: 101,
      wasDisallowed: 100,
      complete: true,
      exactSinceMs: noon,
      agents: [
        {
          vendor: 'of GPTBot',
          name: 'GPTBot',
          requests: 401,
          disallowed: 100,
          wasDisallowed: 0,
          pages: [{ page: '/b/1', count: 100, line: 2 }],
        },
        {
          vendor: null,
          name: '',
          requests: 1,
          disallowed: 1,
          wasDisallowed: 0,
          pages: [{ page: '/b/3', count: 1, line: 5 }],
        },
        {
          vendor: 'of ClaudeBot',
          name: 'ClaudeBot',
          requests: 100,
          disallowed: 0,
          wasDisallowed: 100,
          pages: [],
        },
      ],
    })
    const first = await store.robots.test({ ...query, ...limits, agentsMax: 1 })
    expect([first.requests, first.agents.length]).toEqual([502, 1])
    const late = await store.robots.test({ ...query, ...limits, budgetMs: -1 })
    expect(late).toMatchObject({ requests: 0, complete: false, exactSinceMs: noon + 1 })
    const emptyQuery = { ...query, ...limits, orgId: 'org_nobody' }
    expect(await store.robots.test(emptyQuery)).toMatchObject({ requests: 0, agents: [], complete: true })
  },
  async 'a test judges the crawlers of a family by the groups that they obey'({ store, orgId }) {
    const names = [
      'Applebot',
      'Googlebot-News',
      'GoogleOther-Image',
      'YandexImages',
      'bingbot',
      'AdsBot-Google',
    ]
    const requests = [...names, 'GPTBot'].map((name) =>
      makeEvent(name, { siteId: 'shop', type: 'agent.requested', vendor: null, name, page: '/x' }),
    )
    await store.events.append(makeBatch(orgId, requests))
    const disallowedBy = async (text: string): Promise<string[]> => {
      const range = { sinceMs: noon, untilMs: noon + 1, agentsMax: 9, pagesMax: 1, budgetMs: 10_000 }
      const { agents } = await store.robots.test({ orgId, siteId: 'shop', text, ...range })
      return agents.flatMap(({ name, disallowed }) => (disallowed > 0 ? [name ?? ''] : [])).toSorted()
    }
    const nobodyBut = (token: string): string =>
      `User-agent: ${token}\nAllow: /\n\nUser-agent: *\nDisallow: /`
    const namesExcept = (...allowed: string[]): string[] =>
      [...names.slice(0, 5), 'GPTBot'].filter((name) => !allowed.includes(name)).toSorted()
    expect(await disallowedBy(nobodyBut('Googlebot'))).toEqual(namesExcept('Applebot', 'Googlebot-News'))
    expect(await disallowedBy(nobodyBut('GoogleOther'))).toEqual(namesExcept('GoogleOther-Image'))
    expect(await disallowedBy(nobodyBut('Yandex'))).toEqual(namesExcept('YandexImages'))
    expect(await disallowedBy(nobodyBut('msnbot'))).toEqual(namesExcept('bingbot'))
    expect(await disallowedBy(nobodyBut('GPTBot, Applebot'))).toEqual(namesExcept())
    expect(await disallowedBy('User-agent: AdsBot-Google\nDisallow: /')).toEqual(['AdsBot-Google'])
  },
  async 'a filter finds events by what robots.txt said'({ store, orgId }) {
    const events = [null, 'allowed', 'disallowed'].map((robots) => makeEvent(`${robots}`, { robots }))
    await store.events.append(makeBatch(orgId, events))
    const find = async (robots: string[]) => {
      const query = { orgId, filter: { robots }, limit: 9, before: null, ceilingSeq: null }
      return (await store.events.page(query)).events.map(
        ({ json }) => (JSON.parse(json) as { id: string }).id,
      )
    }
    expect(await find(['disallowed'])).toEqual(['disallowed'])
    expect((await find(['allowed', ''])).toSorted()).toEqual(['allowed', 'null'])
  },
}
