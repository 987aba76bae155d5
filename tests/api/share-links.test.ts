/** Share links: what a page shows to anybody, what it never shows, and that its token opens nothing else. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { limits } from '../../server/limits.ts'
import { readContent } from '../../server/sharing/content.ts'
import { listLinks, makeShareOpens } from '../../server/sharing/links.ts'
import { event } from '../support/events.ts'
import { makeOrg, person, type Person } from '../support/people.ts'
import { allRoutes, nameOf } from '../support/routes.ts'
import { silent } from '../support/silent-log.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let admin: Person
let analyst: Person

const hostile = '<img src=x onerror=alert(1)>\u202e\u0000"'

beforeAll(async () => {
  server = await testServer()
  admin = await person(server, server.org, 'admin')
  analyst = await person(server, server.org, 'analyst')
  const key = await server.key('ingest')
  const minutesAgo = (minutes: number) => new Date(server.clock.now() - minutes * 60_000).toISOString()
  const events = Array.from({ length: 300 }, (_, index) =>
    event(`secret-event-${index}`, {
      occurredAt: minutesAgo(index),
      sessionId: `secret-session-${index % 9}`,
      type: ['tool.executed', 'agent.requested', 'authz.evaluated'][index % 3]!,
      outcome: index % 2 === 0 ? 'success' : 'blocked',
      agent: { class: 'dom', vendor: index % 5 === 0 ? hostile.replace('\u0000', '') : 'Operator' },
      metadata: { page: '/checkout', subject: `secret-subject-${index % 7}`, note: 'secret-note' },
    }),
  )
  const old = event('secret-event-old', {
    occurredAt: minutesAgo(5 * 24 * 60),
    sessionId: 'secret-session-old',
    type: 'agent.detected',
    outcome: 'error',
    agent: { class: 'dom', vendor: 'Operator' },
    metadata: {},
  })
  const body = { events: [...events, old] }
  expect((await server.call('/v1/sdk/events', { key, body })).status).toBe(202)
})
afterAll(() => server[Symbol.asyncDispose]())

const analytics = { name: 'Weekly numbers', page: 'analytics', search: '?range=24h', days: 7 }
const explore = { name: 'Explored', page: 'explore', search: '?range=24h&measure=events&by=vendor', days: 7 }
const overview = { name: 'This week', page: 'overview', search: '', days: 7 }
const view = { name: 'Blocked', page: 'view', search: '?outcome=blocked', days: 7 }

interface Made {
  link: { id: string; state: string; opened: number; panels: string[] }
  token: string
  error?: string
  issues?: { path: string }[]
}

async function make(fields: object, creator = admin): Promise<Made & { status: number }> {
  const answer = await creator.post('/api/share-links', fields)
  return { status: answer.status, ...((await answer.json()) as Made) }
}

/** Without a cookie. */
async function open(token: string): Promise<{ status: number; html: string; headers: Headers }> {
  const answer = await server.call(`/share/${token}`)
  return { status: answer.status, html: await answer.text(), headers: answer.headers }
}

const listed = async (id: string) => {
  const { links } = (await (await admin.call('/api/share-links')).json()) as { links: Made['link'][] }
  return links.find((link) => link.id === id)
}

test('a page shows its numbers to anybody, without cookies, scripts, subjects, sessions, ids or events', async () => {
  const { status, token, link } = await make(analytics)
  expect([status, token.length, link.state, link.opened]).toEqual([201, 22, 'open', 0])
  const { html, headers, ...opened } = await open(token)
  expect(opened.status).toBe(200)
  expect(html).toContain('Weekly numbers')
  for (const text of ['>Requests<', '>100<', '>50<', '>tool.executed<', '>Operator<', '/checkout', '<rect'])
    expect(html).toContain(text)
  expect(html).not.toContain('secret-')
  expect(html).not.toContain('<script')
  expect(html).not.toContain('<img')
  expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;\\u{202e}')
  expect(headers.get('set-cookie')).toBeNull()
  const policy = headers.get('content-security-policy')!
  for (const part of ["default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"])
    expect(policy).toContain(part)
  expect(policy).not.toContain('script-src')
  expect([headers.get('referrer-policy'), headers.get('cache-control'), headers.get('x-robots-tag')]).toEqual(
    ['no-referrer', 'no-store', 'noindex'],
  )
})

test('one panel, a filter, a range and a site are fixed: the address of the link changes nothing', async () => {
  const search = '?range=24h&filter=outcome:blocked&filter=type:authz.evaluated'
  const { token, link } = await make({ ...analytics, search, panels: ['outcomes'] })
  expect(link.panels).toEqual(['outcomes'])
  const { html } = await open(token)
  expect(html).toContain('>50<')
  expect(html).toContain('>Decisions<')
  expect(html).toContain('authz.evaluated')
  for (const text of ['Vendors', 'Operator', '<rect class="is-blocked"']) expect(html).not.toContain(text)
  const otherPage = await open(`${token}?filter=outcome:success&range=90d&panels=vendors`)
  const withoutTime = (text: string) => text.replace(/Updated [^.]+\./, '')
  expect([otherPage.status, withoutTime(otherPage.html)]).toEqual([200, withoutTime(html)])
})

test('a view shows counts; events only when chosen, subjects and sessions only when chosen as well', async () => {
  const counts = await open((await make(view)).token)
  expect(counts.html).toContain('>150<')
  expect(counts.html).not.toContain('secret-')
  expect(counts.html).not.toContain('Newest events')
  const events = await open((await make({ ...view, events: true })).token)
  expect(events.html).toContain('Newest events')
  expect(events.html).toContain('checkout.pay')
  const errors = await open((await make({ ...view, search: '?outcome=error', events: true })).token)
  expect(errors.html).toContain('No events in this range.') // the only one is older than 24 hours
  expect(events.html).not.toContain('secret-')
  const fullPage = await open((await make({ ...view, events: true, identities: true })).token)
  for (const text of ['secret-session-', 'secret-subject-']) expect(fullPage.html).toContain(text)
  for (const text of ['secret-event-', 'secret-note']) expect(fullPage.html).not.toContain(text)
  for (const filter of [
    'sessionId=secret-session-1',
    'subject=secret-subject-1',
    'q=secret&since=2026-01-01',
  ]) {
    expect((await make({ ...view, search: `?${filter}` })).issues).toMatchObject([{ path: 'search' }])
    expect((await make({ ...view, search: `?${filter}`, identities: true })).status).toBe(201)
  }
})

test('Explore shows one measure by one field as a chart and a table, and nothing of the dashboard', async () => {
  const { token } = await make({ ...explore, search: `${explore.search}&filter=outcome:blocked` })
  const { html, status, headers } = await open(token)
  expect(status).toBe(200)
  for (const text of [
    'Events by <bdi>vendor</bdi>',
    '>150<',
    '>Operator<',
    '>120<',
    '80.0 %',
    '<rect',
    'outcome',
  ])
    expect(html).toContain(text)
  expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;\\u{202e}')
  for (const text of ['secret-', '<script', '<img', '<a ']) expect(html).not.toContain(text)
  expect(headers.get('content-security-policy')).not.toContain('script-src')
  const otherPage = await open(`${token}?by=subject&filter=outcome:success`)
  const withoutTime = (text: string) => text.replace(/Updated [^.]+\./, '')
  expect(withoutTime(otherPage.html)).toBe(withoutTime(html))
  const sessions = await open((await make({ ...explore, search: '?range=24h&measure=sessions' })).token)
  for (const text of ['>Sessions<', '>9<', '>300<', '<path']) expect(sessions.html).toContain(text)
  const emptyPage = await open(
    (await make({ ...explore, search: '?filter=tool:none&measure=p95&by=tool' })).token,
  )
  expect(emptyPage.html).toContain('No events in this range.')
})

test('Explore shows subjects and sessions only when they were chosen, and members of metadata that were', async () => {
  for (const query of [
    'by=subject',
    'by=sessionId',
    'by=metadata.subject',
    'by=metadata.subject.id',
    'filter=subject:secret-subject-1',
    'filter=sessionId:secret-session-1',
    'filter=metadata.subject:secret-subject-1',
    'filter=metadata.subject.id:1',
  ]) {
    const search = `?range=24h&${query}`
    const { status, issues } = await make({ ...explore, search })
    expect([query, status, issues?.[0]?.path]).toEqual([query, 400, 'search'])
    expect((await make({ ...explore, search, identities: true })).status).toBe(201)
  }
  const chosen = { ...explore, search: '?range=24h&by=sessionId', identities: true }
  expect((await open((await make(chosen)).token)).html).toContain('secret-session-8')
  const member = await open((await make({ ...explore, search: '?range=24h&by=metadata.note' })).token)
  expect(member.html).toContain('secret-note')
  expect(member.html).not.toContain('secret-subject')
})

test('a shared Explore query has a bounded number of values', async () => {
  const events = Array.from({ length: limits.shareExploreRowsMax + 20 }, (_, n) =>
    event(`many-${n}`, {
      type: 'tool.executed',
      tool: `tool-${n}`,
      siteId: 'many',
      occurredAt: new Date(server.clock.now() - 20 * 24 * 3_600_000).toISOString(),
    }),
  )
  const key = await server.key('ingest')
  expect((await server.call('/v1/sdk/events', { key, body: { events } })).status).toBe(202)
  const search = '?range=30d&siteId=many&by=tool&rows=1000'
  const { html } = await open((await make({ ...explore, search })).token)
  expect(html.match(/scope="row"/g)?.length).toBe(limits.shareExploreRowsMax + 1)
  expect(html).toContain('(20 others)')
  expect(html).toContain(`(${limits.shareExploreRowsMax + 12} others)`) // of the chart, which has 8 colours
})

test('Overview shows the last 7 days, and what changed only when that was chosen', async () => {
  const week = await make(overview)
  expect(week.link.panels).toEqual(['headlines', 'timeline'])
  const { html } = await open(week.token)
  const chart = ['Requests per 3 hours, by outcome', '<rect']
  for (const text of ['>Requests<', '>Tool calls<', '>100<', '>Refused<', '>Blocked<', '>50<', ...chart])
    expect(html).toContain(text)
  for (const text of ['secret-', 'Operator', 'checkout.pay', '<script']) expect(html).not.toContain(text)
  const panels = ['headlines', 'timeline', 'changes']
  const fullPage = await open((await make({ ...overview, search: '?zone=Europe/Berlin', panels })).token)
  for (const text of ['New operator', 'sent its first 20 requests.', 'New tool', '<bdi>checkout.pay</bdi>'])
    expect(fullPage.html).toContain(text)
  expect(fullPage.html).toContain('&lt;img src=x onerror=alert(1)&gt;\\u{202e}')
  for (const text of ['secret-', '<script', '<img', '<a ']) expect(fullPage.html).not.toContain(text)
})

test('of an event only what the page shows is read into memory, without identities unless chosen', async () => {
  const key = await server.key('ingest')
  const big = event('secret-event-big', {
    sessionId: 'secret-session-big',
    occurredAt: new Date(server.clock.now()).toISOString(),
    metadata: { subject: 'secret-subject-big', note: 'secret-note'.repeat(2_000) },
  })
  expect((await server.call('/v1/sdk/events', { key, body: { events: [big] } })).status).toBe(202)
  const content = { page: 'view', search: '', panels: [], events: true, frameOrigins: [] } as const
  const shown = async (identities: boolean): Promise<string> => {
    const link = { ...content, panels: [], frameOrigins: [], identities }
    return JSON.stringify(await readContent(server.store, server.org.id, link, server.clock.now()))
  }
  expect(await shown(false)).not.toContain('secret-')
  expect(await shown(true)).toContain('secret-subject-big')
  expect(await shown(true)).not.toContain('secret-note')
})

test('created, opened and revoked links are audited; a revoked one is 404 at once', async () => {
  const { token, link } = await make(analytics)
  for (let times = 0; times < 3; times++) await open(token)
  expect(await listed(link.id)).toMatchObject({ opened: 3, state: 'open' })
  const revoke = (revoker: Person) => revoker.post(`/api/share-links/${link.id}/revoke`, {})
  expect((await revoke(analyst)).status).toBe(403)
  expect((await revoke(admin)).status).toBe(204)
  const revokedPage = await open(token)
  expect([
    revokedPage.status,
    revokedPage.html.includes('Link not found'),
    revokedPage.html.includes('Weekly'),
  ]).toEqual([404, true, false])
  expect((await revoke(admin)).status).toBe(409)
  const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 99, beforeSeq: null })
  const linkEntries = entries.filter(({ target }) => target === link.id)
  expect(linkEntries.map(({ action }) => action)).toEqual([
    'share_link.revoked',
    'share_link.opened',
    'share_link.created',
  ])
  expect(linkEntries[0]).toMatchObject({ actor: `user:${admin.id}`, metadata: { opened: 3 } })
  expect(JSON.stringify(linkEntries)).not.toContain(token)
})

test('openings that are being written are listed', async () => {
  const { link } = await make(analytics)
  const { store, clock, org } = server
  const shareOpens = makeShareOpens({ store, clock }, silent)
  for (let times = 1; times < 20; times++) {
    shareOpens.note({ id: link.id, orgId: org.id })
    const flushed = shareOpens.flush()
    const links = await listLinks({ store, clock, shareOpens }, org.id)
    expect(links.find(({ id }) => id === link.id)?.opened).toBe(times)
    await flushed
  }
})

test('the token opens no other route, as a cookie, a key, in the address or as an id', async () => {
  const { token } = await make(analytics)
  const open =
    /^\w+ (?:\/share\/|\/docs|\/sdk\/|\/openapi|\/healthz|\/readyz|\/version|\/v1\/(?:limits|health)|\/api\/(?:setup|sign-in|sign-out|oidc|reset-password|invitations\/(?:look|accept)))/
  const triedRoutes: string[] = []
  for (const route of allRoutes()) {
    if (open.test(nameOf(route))) continue
    const path = route.path.replaceAll(/:\w+/g, token)
    for (const headers of [
      { cookie: `sightglass=${token}` },
      { authorization: `Bearer ${token}` },
      { 'x-api-key': token, referer: `${server.url}/share/${token}` },
    ]) {
      const init = {
        method: route.method,
        ...(route.method === 'GET' ? {} : { body: {} }),
        headers: { ...headers } as never,
      }
      const answer = await server.call(path, init)
      await answer.body?.cancel()
      expect([nameOf(route), answer.status >= 400]).toEqual([nameOf(route), true])
    }
    triedRoutes.push(nameOf(route))
  }
  expect(triedRoutes.length).toBeGreaterThan(120)
  expect(triedRoutes).toContain('GET /api/events')
  expect(triedRoutes).toContain('GET /v1/traces')
})

test('analysts cannot create or list links, other organizations do not see them', async () => {
  expect((await make(analytics, analyst)).status).toBe(403)
  expect((await analyst.call('/api/share-links')).status).toBe(403)
  const { link } = await make(analytics)
  const otherOrg = await makeOrg(server, 'other')
  const stranger = await person(server, otherOrg, 'owner')
  expect(await (await stranger.call('/api/share-links')).json()).toEqual({ links: [] })
  expect((await stranger.post(`/api/share-links/${link.id}/revoke`, {})).status).toBe(404)
})

test('only the sites that a link names may show it in a frame', async () => {
  const frameOrigins = ['https://wiki.example.com', 'http://localhost:8080']
  const { token } = await make({ ...analytics, frameOrigins })
  const policy = (await open(token)).headers.get('content-security-policy')
  expect(policy).toEndWith('frame-ancestors https://wiki.example.com http://localhost:8080')
  const wrong = [
    '*',
    'https://*',
    "https://a.example; script-src 'unsafe-inline'",
    'javascript:x',
    'https://a/b',
    '',
  ]
  for (const origin of wrong)
    expect((await make({ ...analytics, frameOrigins: [origin] })).issues).toMatchObject([
      { path: 'frameOrigins' },
    ])
  const manyOrigins = Array.from({ length: 6 }, (_, n) => `https://a${n}.example`)
  expect((await make({ ...analytics, frameOrigins: manyOrigins })).status).toBe(400)
})

test.each([
  [{ ...analytics, name: ' ' }, 'name'],
  [{ ...analytics, name: 'a\nb' }, 'name'],
  [{ ...analytics, page: 'settings' }, 'page'],
  [{ ...analytics, panels: ['subjects'] }, 'panels'],
  [{ ...analytics, panels: [] }, 'panels'],
  [{ ...analytics, events: true }, 'events'],
  [{ ...view, panels: ['types'] }, 'panels'],
  [{ ...explore, events: true }, 'events'],
  [{ ...explore, panels: ['types'] }, 'panels'],
  [{ ...explore, search: '?measure=secrets' }, 'measure'],
  [{ ...explore, search: '?by=id' }, 'by'],
  [{ ...explore, search: '?range=5d' }, 'range'],
  [{ ...explore, search: `?by=metadata.${'x'.repeat(201)}` }, 'by'],
  [{ ...overview, events: true }, 'events'],
  [{ ...overview, identities: true }, 'identities'],
  [{ ...overview, panels: ['vendors'] }, 'panels'],
  [{ ...overview, panels: [] }, 'panels'],
  [{ ...overview, search: '?range=90d' }, 'range'],
  [{ ...overview, search: '?zone=Mars/Base' }, 'zone'],
  [{ ...analytics, days: 0 }, 'days'],
  [{ ...analytics, days: 1.5 }, 'days'],
  [{ ...analytics, days: 367 }, 'days'],
  [{ ...analytics, search: `?filter=vendor:${'x'.repeat(1_999)}` }, 'search'],
  [{ ...analytics, search: '?range=5d' }, 'range'],
  [{ ...analytics, search: '?filter=subject:x' }, 'filter'],
  [{ ...view, search: '?type=<script>' }, 'type'],
  [{ ...analytics, search: '?zone=Europe/Atlantis' }, 'zone'],
  [{ ...view, search: '?zone=Europe/Atlantis' }, 'zone'],
])('a wrong field is named: %o', async (fields, path) => {
  const { status, issues } = await make(fields)
  expect([status, issues?.[0]?.path]).toEqual([400, path])
})

test('a link accepts no other parameter, and an organization has a limited number of links', async () => {
  expect((await make({ ...analytics, search: '?range=24h&orgId=other' })).status).toBe(400)
  expect((await make({ ...analytics, admin: true })).status).toBe(400)
  const linkCount = ((await (await admin.call('/api/share-links')).json()) as { links: object[] }).links
    .length
  for (let n = linkCount; n < limits.shareLinksMax; n++) expect((await make(analytics)).status).toBe(201)
  expect((await make(analytics)).error).toBe('conflict')
}, 30_000)

test('hostile tokens are 404 without an error, then their sender waits', async () => {
  const wrong = [
    'a',
    'A'.repeat(22),
    '%00',
    '..%2f..%2fsecret.key',
    "' OR 1=1 --",
    'ü'.repeat(22),
    'a'.repeat(4_000),
  ]
  for (const token of wrong) {
    const { status, html } = await open(encodeURIComponent(token).replaceAll('%25', '%'))
    expect([token, status, html.includes('not found')]).toEqual([token, 404, true])
  }
  let refused = 0
  for (let n = 0; n < limits.linkAttemptsFree + 5; n++)
    refused += Number((await open('B'.repeat(22))).status === 429)
  expect(refused).toBeGreaterThan(0)
})

test('a link ends at its time', async () => {
  const otherOrg = await makeOrg(server, 'third')
  const owner = await person(server, otherOrg, 'owner')
  const { token, link } = await make({ ...analytics, days: 1 }, owner)
  server.clock.move(86_400_000 - 60_000)
  expect((await open(token)).status).toBe(200)
  server.clock.move(60_001)
  expect((await open(token)).status).toBe(404)
  const later = await person(server, otherOrg, 'owner')
  const { links } = (await (await later.call('/api/share-links')).json()) as { links: Made['link'][] }
  expect(links).toMatchObject([{ id: link.id, state: 'expired' }])
})
