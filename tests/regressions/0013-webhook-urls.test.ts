/** URLs that can never be a receiver were accepted, and a response revealed which names the internal network has. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { hostname } from 'node:os'
import { startAppliance, type Appliance } from '../support/binary.ts'

setDefaultTimeout(60_000)

let appliance: Appliance
let key: string
beforeAll(async () => {
  appliance = await startAppliance()
  const keyResult = await appliance.cli('key', 'create', '--kind', 'secret', '--label', 'hooks', '--json')
  key = (JSON.parse(keyResult.stdout) as { key: string }).key
})
afterAll(() => appliance[Symbol.asyncDispose]())

interface Answer {
  status: number
  code: string | undefined
  body: unknown
}

async function post(path: string, body: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(appliance.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  const answer = (await response.json()) as { issues?: { code: string }[] }
  return { status: response.status, code: answer.issues?.[0]?.code, body: answer }
}

test.each([
  'http://localhost/',
  'http://localhost./',
  'http://LocalHost.:8080/in',
  'http://x.localhost/',
  'http://a.b.LOCALHOST./',
  'http://ip6-localhost/',
  'http://localhost.localdomain/',
  'http://example.com:0/',
  'https://example.com:00/',
  'http://example.com/a\r\nx: y',
  'http://exam\nple.com/',
  '\thttp://example.com/',
  'syslog+udp://localhost.',
])('%j is rejected at once, for an endpoint, a test delivery and on the command line', async (url) => {
  expect(await post('/v1/webhooks/endpoints', { url })).toMatchObject({ status: 400, code: 'url_blocked' })
  expect(await post('/v1/webhooks/test', { url })).toMatchObject({ status: 400, code: 'url_blocked' })
  if (url.includes('syslog')) return
  const { code, stderr } = await appliance.cli('webhook', 'add', url)
  expect([code, stderr]).toEqual([1, expect.stringContaining('this URL is not allowed')])
})

test('an internal name and an unknown one are both accepted', async () => {
  // The hosts file has the name of this machine, whose address is not public.
  const inside = `http://${hostname()}/in`
  const known = await post('/v1/webhooks/endpoints', { url: inside })
  const unknown = await post('/v1/webhooks/endpoints', { url: 'http://nobody.invalid/in' })
  expect([known.status, unknown.status]).toEqual([201, 201])
})

test('a test delivery without a payload sends an empty object', async () => {
  const { status, body } = await post('/v1/webhooks/test', { url: 'http://nobody.invalid/in' })
  expect(status).toBe(202)
  const { deliveryId } = body as { deliveryId: string }
  const shown = await appliance.cli('webhook', 'show', deliveryId, '--json')
  expect(JSON.parse(shown.stdout)).toMatchObject({ payload: {} })
})
