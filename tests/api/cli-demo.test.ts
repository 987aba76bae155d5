/** `sightglass demo` of the executable: fills, fills again, removes, and sends live events until Ctrl-C. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { binaryPath, startAppliance, type Appliance } from '../support/binary.ts'
import { until } from '../support/until.ts'

const owner = { email: 'owner@shop.example', password: 'correct-horse-battery-staple' }
const ownerEnv = { SIGHTGLASS_ADMIN_EMAIL: owner.email, SIGHTGLASS_ADMIN_PASSWORD: owner.password }
let appliance: Appliance
let secret: string

beforeAll(async () => {
  appliance = await startAppliance({ env: ownerEnv })
  secret = (await json('key', 'create', '--kind', 'secret', '--label', 'reader'))['key'] as string
}, 90_000)
afterAll(() => appliance.stop())

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await appliance.cli(...args, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as Record<string, unknown>
}

async function newest(): Promise<Record<string, unknown>[]> {
  const response = await fetch(`${appliance.url}/v1/traces?limit=200`, {
    headers: { authorization: `Bearer ${secret}` },
  })
  return ((await response.json()) as { events: Record<string, unknown>[] }).events
}

/** The kinds of change that Overview shows a visitor of a day ago. */
async function changes(): Promise<string[]> {
  const cookie = await signedIn()
  const answer = await fetch(`${appliance.url}/api/changes`, { headers: { cookie } })
  const auditChanges = ((await answer.json()) as { changes: { kind: string }[] }).changes
  return [...new Set(auditChanges.map(({ kind }) => kind))]
}

async function signedIn(): Promise<string> {
  const answer = await fetch(`${appliance.url}/api/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: appliance.url },
    body: JSON.stringify(owner),
  })
  return answer.headers.get('set-cookie')!.split(';')[0]!
}

test('fills about the requested number; a second run adds nothing; remove deletes everything', async () => {
  const first = await json('demo', '--events', '2000', '--seed', '7')
  expect(first).toEqual({
    orgId: expect.stringMatching(/^org_/),
    orgSlug: 'default',
    siteId: 'demo-shop',
    seed: 7,
    sent: expect.any(Number),
    accepted: first['sent'],
    deduped: 0,
    since: expect.stringMatching(/Z$/),
    until: expect.stringMatching(/Z$/),
  })
  expect(first['accepted']).toBeWithin(1_700, 2_300)
  expect(Date.now() - Date.parse(String(first['since']))).toBeGreaterThan(28 * 86_400_000)
  expect(Date.parse(String(first['until']))).toBeLessThanOrEqual(Date.now())
  const shown = await newest()
  expect(shown).toHaveLength(200)
  for (const event of shown) expect(event).toMatchObject({ siteId: 'demo-shop', metadata: { demo: true } })

  expect(await changes()).toEqual(expect.arrayContaining(['impostor', 'refusingRule', 'operator']))

  const again = await json('demo', '--events=2000', '--seed=7')
  expect(again['deduped']).toBeGreaterThanOrEqual(Number(first['accepted']))
  const removed = await json('demo', 'remove')
  expect(removed).toEqual({
    orgId: first['orgId'],
    orgSlug: 'default',
    siteId: 'demo-shop',
    removed: Number(first['accepted']) + Number(again['accepted']),
  })
  expect(await newest()).toEqual([])
  const { stdout } = await appliance.cli('demo', 'remove')
  expect(stdout).toBe('No demo events in default.\n')
}, 90_000)

test('live: a steady rate through the public endpoint; Ctrl-C exits cleanly and revokes the key', async () => {
  const startMs = performance.now()
  const child = Bun.spawn(
    [binaryPath, 'demo', '--live', '--rate', '40/s', '--json', '--data-dir', appliance.dataDir],
    {
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  await until(async () => (await newest()).length >= 15)
  child.kill('SIGINT')
  const code = await child.exited
  const seconds = (performance.now() - startMs) / 1_000
  const stdout = await new Response(child.stdout).text()
  const stderr = await new Response(child.stderr).text()
  expect([code, stderr]).toEqual([0, ''])
  const sum = JSON.parse(stdout) as { sent: number; accepted: number; deduped: number; retries: number }
  expect(sum).toEqual({ sent: sum.accepted, accepted: sum.sent, deduped: 0, retries: 0 })
  expect(sum.sent).toBeWithin(15, 40 * seconds + 1)
  expect(await newest()).toHaveLength(sum.sent)
  const { keys } = (await json('key', 'list', '--kind', 'ingest')) as { keys: Record<string, unknown>[] }
  expect(keys.map(({ label, state, siteIds }) => ({ label, state, siteIds }))).toEqual([
    { label: 'demo --live', state: 'revoked', siteIds: ['demo-shop'] },
  ])
}, 90_000)

test('live: obeys Retry-After of a busy server and resends the same events', async () => {
  const bodies: string[] = []
  const busy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      bodies.push(await request.text())
      if (bodies.length === 1) return new Response('', { status: 429, headers: { 'retry-after': '1' } })
      return Response.json({ ok: true, accepted: 1, deduped: 0 }, { status: 202 })
    },
  })
  const url = `http://127.0.0.1:${busy.port}`
  const startMs = performance.now()
  const child = Bun.spawn(
    [binaryPath, 'demo', '--live', '--rate', '20/s', '--url', url, '--key', 'agtx_ik_x'],
    {
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  while (bodies.length < 3 && performance.now() - startMs < 10_000) await Bun.sleep(20)
  expect(performance.now() - startMs).toBeGreaterThan(1_000)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await new Response(child.stderr).text()).toBe('sightglass: status 429; retrying in 1 s\n')
  expect(bodies[1]).toBe(bodies[0]!)
  expect(bodies[2]).not.toBe(bodies[1]!)
  await busy.stop(true)
}, 90_000)

test('live: a rejected key is a one-line error and exit 1; without a server the error says what to do', async () => {
  const refused = await appliance.cli('demo', '--live', '--url', appliance.url, '--key', 'agtx_ik_wrong')
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/^sightglass: The server rejected the events: [^\n]+\n$/),
  ])
  const lonely = Bun.spawnSync([binaryPath, 'demo', '--live', '--data-dir', `${appliance.dataDir}-none`])
  expect([lonely.exitCode, lonely.stderr.toString()]).toEqual([
    1,
    expect.stringContaining('There is no data in'),
  ])
  for (const args of [
    ['--live', '--events', '500'],
    ['--url', appliance.url],
    ['--rate', '1/s'],
  ]) {
    expect((await appliance.cli('demo', ...args)).code).toBe(2)
  }
}, 90_000)
