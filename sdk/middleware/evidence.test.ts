/** Evidence of the appliance: loaded when it is needed, once, from nowhere else, and only when it is signed. */
import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Problem } from '../client/problem.ts'
import { type EvidenceOptions, loadEvidence, readEvidence } from './middleware.ts'

const bundled = readFileSync(join(import.meta.dir, '../../server/evidence/bundled-pack.json'), 'utf8')
const unsigned = JSON.stringify({ ...(JSON.parse(bundled) as object), signature: undefined })
const etag = '"abc"'

type Answer = (request: Request) => Response | Promise<Response>
const servers: Bun.Server<undefined>[] = []
afterEach(async () => {
  setSystemTime()
  for (const server of servers.splice(0)) await server.stop(true)
})

const pack: Answer = (request) =>
  request.headers.get('if-none-match') === etag
    ? new Response(null, { status: 304 })
    : new Response(bundled, { headers: { etag } })

function appliance(answer: Answer, options: Partial<EvidenceOptions> = {}) {
  const state = { answer, paths: [] as string[] }
  const fetch = (request: Request): Response | Promise<Response> => {
    state.paths.push(new URL(request.url).pathname)
    return state.answer(request)
  }
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
  servers.push(server)
  const problems: Problem[] = []
  const onError = (problem: Problem): void => void problems.push(problem)
  const evidence = loadEvidence({ url: server.url.href, onError, ...options })
  return { state, evidence, problems }
}

const later = (ms: number): void => void setSystemTime(Date.now() + ms)

test('nothing is sent until evidence is needed; then it is loaded once', async () => {
  const { state, evidence, problems } = appliance(pack)
  await Bun.sleep(5)
  expect(state.paths).toEqual([])
  for (let request = 0; request < 100; request++) expect(evidence.current()).toBeNull()
  expect(await evidence.load()).toBe(true)
  expect(evidence.current()?.evidence.listOf.length).toBeGreaterThan(3_000)
  expect((await evidence.current()?.keyring())?.byId.size).toBe(1)
  expect(await Promise.all([evidence.load(), evidence.load()])).toEqual([true, true])
  expect(state.paths).toEqual(['/sdk/evidence.json'])
  expect(problems).toEqual([])
})

test('it is refreshed when it is due, and unchanged evidence is not sent again', async () => {
  const { state, evidence } = appliance(pack, { refreshMs: 60_000 })
  await evidence.load()
  const evidenceBefore = evidence.current()
  later(59_000)
  await evidence.load()
  expect(state.paths.length).toBe(1)
  later(2_000)
  expect(evidence.current()).toBe(evidenceBefore) // nobody waits for the newer pack
  await evidence.load()
  expect([state.paths.length, evidence.current() === evidenceBefore]).toEqual([2, true])
  state.answer = () => new Response(bundled, { headers: { etag: '"new"' } })
  later(61_000)
  await evidence.load()
  expect(evidence.current()).not.toBe(evidenceBefore)
})

test('after a failure the loaded evidence stays in use, and attempts have growing pauses', async () => {
  const { state, evidence, problems } = appliance(pack, { refreshMs: 60_000 })
  await evidence.load()
  const evidenceBefore = evidence.current()
  state.answer = () => new Response('no', { status: 503 })
  for (let second = 0; second < 600; second++) {
    later(1_000)
    expect(await evidence.load()).toBe(true)
  }
  expect(evidence.current()).toBe(evidenceBefore)
  expect(problems.length).toBeWithin(7, 10) // pauses from 5 s, each up to twice the last
  expect(problems[0]).toMatchObject({
    code: 'evidence_failed',
    message: expect.stringContaining('status 503'),
  })
})

const endless = (): Response =>
  new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536).fill(32)) }))

test.each<[string, Answer, string]>([
  ['without a signature', () => new Response(unsigned), 'not signed by a Sightglass release'],
  [
    'that was changed',
    () => new Response(bundled.replace('GPTBot', 'GPTBat')),
    'not signed by a Sightglass release',
  ],
  ['that is no JSON', () => new Response('{'), 'The evidence pack was not loaded: '],
  ['that is no pack', () => new Response('null'), 'not signed by a Sightglass release'],
  ['that nests too deeply', () => new Response('['.repeat(500_000)), 'The evidence pack was not loaded: '],
  ['that never ends', endless, 'larger than 8388608 bytes'],
  ['elsewhere', () => Response.redirect('http://127.0.0.1:9/', 302), 'answered with status 302'],
  ['that is missing', () => new Response('', { status: 404 }), 'answered with status 404'],
  ['not asked for', () => new Response(null, { status: 304 }), 'answered with status 304'],
])('a pack %s is refused', async (_, answer, reason) => {
  const { evidence, problems } = appliance(answer)
  expect([await evidence.load(), evidence.current()]).toEqual([false, null])
  expect(problems.map(({ code }) => code)).toEqual(['evidence_failed'])
  expect(problems[0]?.message).toContain(reason)
})

test('a silent appliance is given up', async () => {
  const silent: Answer = () => new Promise(() => {})
  const { evidence, problems } = appliance(silent, { requestTimeoutMs: 20 })
  expect(await evidence.load()).toBe(false)
  expect(problems.length).toBe(1)
})

test('a fetch that throws at once is tried again', async () => {
  const thrown = (): never => {
    throw new Error('no network')
  }
  const { evidence, problems } = appliance(pack, { fetch: thrown })
  await evidence.load()
  later(6_000)
  await evidence.load()
  expect(problems.map(({ message }) => message)).toEqual(
    Array(2).fill('The evidence pack was not loaded: no network.'),
  )
})

test('with trust, a pack without a signature is accepted', async () => {
  const { evidence } = appliance(() => new Response(unsigned), { trust: true })
  expect(await evidence.load()).toBe(true)
})

test('a file of your own needs no appliance; wrong addresses and packs throw at once', () => {
  expect(readEvidence(JSON.parse(unsigned)).current()?.evidence.listOf.length).toBeGreaterThan(3_000)
  expect(() => readEvidence({})).toThrow('format must be')
  expect(() => loadEvidence({ url: 'sightglass.example' })).toThrow('url must be the URL of the appliance')
})
