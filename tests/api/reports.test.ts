/** Reports: the counts of /v1/metrics in one signed HTML file, which no change of a byte survives. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { limits } from '../../server/limits.ts'
import { verifyReport } from '../../server/reports/proof.ts'
import { event } from '../support/events.ts'
import { makeOrg, person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { runs } from '../support/runs.ts'

const hostile =
  '</title></script><script id="sightglass-proof">alert(1)</script><img src=x onerror=alert(2)>\u202e"\''

let server: TestServer
let viewer: Person
let html: string
let key: string

beforeAll(async () => {
  server = await testServer()
  viewer = await person(server, server.org, 'viewer')
  const ingest = await server.key('ingest')
  const isoAt = (index: number) => new Date(Date.now() - (index % 150) * 3_600_000).toISOString()
  const events = Array.from({ length: 900 }, (_, index) =>
    event(`evt_${index}`, {
      occurredAt: isoAt(index),
      type: ['tool.executed', 'agent.detected', 'authz.evaluated', 'custom.kind'][index % 4],
      outcome: ['success', 'error', 'blocked'][index % 3],
      tool: index % 7 === 0 ? hostile : `tool-${index % 40}`,
      agent: {
        class: 'dom',
        trust: 'detected',
        vendor: index % 5 === 0 ? hostile : `Operator ${index % 60}`,
      },
    }),
  )
  const response = await server.call('/v1/sdk/events', { key: ingest, body: { events } })
  expect(await response.json()).toMatchObject({ ok: true })
  const answer = await viewer.call('/api/reports?range=7d', { method: 'POST', body: {} })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(answer.headers.get('content-disposition')).toMatch(
    /^attachment; filename="sightglass-[\w-]+\.html"$/,
  )
  html = await answer.text()
  key = verifyReport(bytes(html), null).key!
})
afterAll(() => server[Symbol.asyncDispose]())

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

test('the report is one small file without requests, scripts or a stranger’s markup', () => {
  expect(bytes(html).length).toBeLessThan(400 * 1024)
  expect(html).toContain(`content="default-src 'none'; style-src 'sha256-`)
  expect(html.match(/<script/g)).toHaveLength(1)
  expect(/<(img|link|iframe|a|object|form)\b|https?:|url\(/.exec(html)).toBeNull()
  expect(html).toContain('\\u{202e}')
})

test('its numbers are those of /v1/metrics', async () => {
  const verdict = verifyReport(bytes(html), null)
  expect(verdict).toMatchObject({ ok: true, fault: null })
  const secret = await server.key('secret')
  const { since, until } = verdict
  const answer = await server.call(`/v1/metrics?since=${since}&until=${until}`, { key: secret })
  const { total, byType } = (await answer.json()) as { total: number; byType: { [type: string]: number } }
  expect(verdict.events).toBe(total)
  for (const [type, count] of Object.entries(byType))
    expect(html).toContain(`<th scope="row"><bdi>${type}</bdi></th><td>${count}</td>`)
})

test('law: a report with any changed, missing or added byte is refused', () => {
  const whole = bytes(html)
  const place = fc.integer({ min: 0, max: whole.length - 1 })
  fc.assert(
    fc.property(
      place,
      fc.integer({ min: 1, max: 255 }),
      fc.constantFrom('change', 'remove', 'add'),
      (position, byteChange, editKind) => {
        const before = whole.slice(0, position)
        const after = whole.slice(editKind === 'add' ? position : position + 1)
        const middle =
          editKind === 'remove' ? [] : [editKind === 'add' ? byteChange : whole[position]! ^ byteChange]
        const changed = new Uint8Array([...before, ...middle, ...after])
        expect(verifyReport(changed, null).ok).toBe(false)
      },
    ),
    { numRuns: runs(300) },
  )
})

test('a proof of another report, key or form is refused, and each refusal says why', async () => {
  const proofOf = (text: string) => /(?<=id="sightglass-proof">).*(?=<\/script>)/.exec(text)![0]
  const otherHtml = await (await viewer.call('/api/reports?range=24h', { method: 'POST', body: {} })).text()
  const faultOf = (text: string, trusted: string | null = null) => verifyReport(bytes(text), trusted).fault
  expect(faultOf(html.replace(proofOf(html), proofOf(otherHtml)))).toBe('It was changed after it was signed')
  expect(faultOf(html, key)).toBeNull()
  expect(faultOf(html, 'A'.repeat(43))).toBe('Another key signed it')
  const extendedProof = JSON.stringify({ ...(JSON.parse(proofOf(html)) as object), extra: 1 })
  expect(faultOf(html.replace(proofOf(html), extendedProof))).toBe('Its proof is malformed')
  const claimed = JSON.stringify({ ...(JSON.parse(proofOf(html)) as object), events: 1 }).replaceAll(
    '<',
    '\\u003c',
  )
  expect(faultOf(html.replace(proofOf(html), claimed))).toBe('Its signature does not match')
  expect(faultOf('<!doctype html>')).toBe('It has no proof')
  expect(verifyReport(new Uint8Array([0xff, 0xfe]), null).fault).toBe('It is not UTF-8 text')
})

test('a key or signature in another spelling of the same bytes is refused', () => {
  const spelled = (field: 'key' | 'signature', change: (text: string) => string) =>
    html.replace(
      RegExp(`("${field}":")([^"]+)"`),
      (_, prefix: string, text: string) => `${prefix}${change(text)}"`,
    )
  /** The last character has bits that no byte uses. */
  const lastOf = (text: string) =>
    text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) + 1)
  for (const field of ['key', 'signature'] as const)
    for (const change of [lastOf, (text: string) => ` ${text}`, (text: string) => `${text}=`]) {
      const changed = spelled(field, change)
      expect(changed).not.toBe(html)
      expect(verifyReport(bytes(changed), null).fault).toBe('Its signature does not match')
    }
})

test('each report is in the audit log; other organizations, strangers and wrong ranges are refused', async () => {
  const org = await makeOrg(server, 'Empty')
  const otherViewer = await person(server, org, 'viewer')
  const empty = await (await otherViewer.call('/api/reports', { method: 'POST', body: {} })).text()
  expect(verifyReport(bytes(empty), key)).toMatchObject({ ok: true, events: 0, orgId: org.id })
  expect(empty).toContain('No visits in this range.')
  expect((await server.call('/api/reports', { method: 'POST', body: {} })).status).toBe(401)
  expect((await viewer.call('/api/reports?range=1y', { method: 'POST', body: {} })).status).toBe(400)
  const trail = await server.store.audit.list({
    orgId: server.org.id,
    filter: {},
    limit: 10,
    beforeSeq: null,
  })
  expect(JSON.stringify(trail)).toContain('report.made')
})

test('the rows of a report are bounded', () => {
  const rows = html.split('<h2>Operators</h2>')[1]!.split('</section>')[0]!.match(/<tr>/g)!.length
  expect(rows).toBeLessThanOrEqual(limits.reportRowsMax + 2)
})
