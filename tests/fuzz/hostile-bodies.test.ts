/**
 * The law of hostile bodies, on the executable: beside each of them no turn of the HTTP thread takes more than 50 ms of
 * processor time, the process stays below 500 MB, and every sender gets an answer. An everyday run tries an eighth of
 * the bodies, with others every time. `SIGHTGLASS_TEST_TABLE=1` prints the cost of each.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { quantile } from '../support/load.ts'
import { allRoutes } from '../support/routes.ts'
import { isFull } from '../support/runs.ts'
import { startMetered, type Cost, type Metered } from '../support/turns.ts'
import { hostileBodies, smallShapes } from './hostile-bodies.ts'
import type { HostileBody } from './hostile-parts.ts'

const turnMsMax = 50
const residentMiBMax = 500_000_000 / 1024 / 1024

let metered: Metered
let keys: { ingest: string; secret: string }
let cookie: string

const owner = { email: 'ada@example.com', password: 'a window in a vessel' }

beforeAll(async () => {
  metered = await startMetered({
    args: ['--rate-limit-gateway', 'off', '--rate-limit-ingest', 'off'],
    env: { SIGHTGLASS_ADMIN_EMAIL: owner.email, SIGHTGLASS_ADMIN_PASSWORD: owner.password },
  })
  const keyOf = async (kind: string): Promise<string> => {
    const keyResult = await metered.appliance.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
    return (JSON.parse(keyResult.stdout) as { key: string }).key
  }
  keys = { ingest: await keyOf('ingest'), secret: await keyOf('secret') }
  const signedIn = await fetch(`${metered.appliance.url}/api/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(owner),
  })
  cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
})

const rows: string[] = []
const healthMs: number[] = []

afterAll(async () => {
  await metered[Symbol.asyncDispose]()
  if (process.env['SIGHTGLASS_TEST_TABLE'] !== '1') return
  const head = 'hostile body | longest turn, ms | thread, ms | all threads, ms | resident, MiB | answer'
  process.stdout.write(`${[head, ...rows].join('\n')}\n`)
  process.stdout.write(`/healthz beside them: p99 ${Math.round(quantile(healthMs, 0.99))} ms\n`)
})

/** Sends the body. */
function post(path: string, headers: Headers, bytes: Uint8Array): Promise<Response> {
  return fetch(metered.appliance.url + path, { method: 'POST', headers, body: Buffer.from(bytes) })
}

/** Sends the body, and asks for `/healthz` meanwhile. */
async function send(body: HostileBody, bytes: Uint8Array): Promise<Response> {
  const headers = new Headers({ authorization: `Bearer ${keys[body.key]}`, 'content-type': body.type })
  if (body.encoding !== undefined) headers.set('content-encoding', body.encoding)
  const { url } = metered.appliance
  let isAnswered = false
  const beside = (async () => {
    while (!isAnswered) {
      const startedMs = performance.now()
      await (await fetch(`${url}/healthz`)).text()
      healthMs.push(performance.now() - startedMs)
      await Bun.sleep(10)
    }
  })()
  try {
    return await post(body.path, headers, bytes)
  } finally {
    isAnswered = true
    await beside
  }
}

/** Others of the machine may take the caches of a turn away, so that the best of some attempts counts. */
const attempts = 6

async function costOf(body: HostileBody): Promise<Cost & { answer: string; status: number }> {
  const bytes = body.bytes()
  let best: (Cost & { answer: string; status: number }) | null = null
  for (let attempt = 0; attempt < attempts; attempt++) {
    let status = 0
    let answer = ''
    const cost = await metered.cost(async () => {
      const response = await send(body, bytes)
      status = response.status
      answer = await response.text()
    })
    if (best === null || cost.longestTurnMs < best.longestTurnMs) best = { ...cost, status, answer }
    if (!body.statuses.includes(status) || best.longestTurnMs <= turnMsMax) break
  }
  return best!
}

/** An everyday run tries an eighth, with others every time. */
const triedShare = isFull ? 1 : 8
const start = Date.now() % triedShare

function shareOf<One>(items: readonly One[]): One[] {
  return items.filter((_, index) => index % triedShare === start)
}

describe('beside a hostile body', () => {
  const bodies = shareOf(hostileBodies)
  test.each(bodies.map((body) => [body.name, body] as const))('%s', async (name, body) => {
    // A neighbour that empties the processor's cache lengthens a turn: the shortest of some says what the code needs.
    let cost = await costOf(body)
    for (let again = 0; again < 2 && cost.longestTurnMs > turnMsMax; again++) cost = await costOf(body)
    const { longestTurnMs, threadMs, processMs, peakMiB, status, answer } = cost
    const figures = [longestTurnMs, threadMs, processMs, peakMiB].map(Math.round)
    rows.push([name, ...figures, `${status} ${answer.replaceAll(/[^ -~]+/g, ' ').slice(0, 80)}`].join(' | '))
    expect(body.statuses).toContain(status)
    expect(longestTurnMs).toBeLessThanOrEqual(turnMsMax)
    expect(peakMiB).toBeLessThan(residentMiBMax)
  })
})

/** These end the session or the organization without reading a body. */
const notTried = /sign-out|end-others|^\/v1\/(sdk\/|traces|logs|metrics)|^\/mcp/

describe('no route that reads a small JSON body takes long for one of', () => {
  const paths = allRoutes()
    .filter(({ method, path }) => method === 'POST' && !notTried.test(path))
    .map(({ path }) => path.replaceAll(/:\w+/g, 'no-such-thing'))

  test.each(Object.entries(smallShapes))('%s', async (shape, bytes) => {
    let worst: [path: string, cost: Cost, status: number] | null = null
    for (const path of shareOf(paths)) {
      const headers = new Headers({ 'content-type': 'application/json' })
      if (path.startsWith('/api/')) headers.set('cookie', cookie)
      else headers.set('authorization', `Bearer ${keys.secret}`)
      let best: Cost | null = null
      let status = 0
      for (let attempt = 0; attempt < attempts && (best?.longestTurnMs ?? Infinity) > turnMsMax; attempt++) {
        const cost = await metered.cost(async () => {
          const response = await post(path, headers, bytes)
          await response.text()
          status = response.status
        })
        if (best === null || cost.longestTurnMs < best.longestTurnMs) best = cost
      }
      expect([path, status < 500 && status !== 401, status]).toEqual([path, true, status])
      if (worst === null || best!.longestTurnMs > worst[1].longestTurnMs) worst = [path, best!, status]
    }
    const [path, { longestTurnMs, threadMs, processMs, peakMiB }, status] = worst!
    const figures = [longestTurnMs, threadMs, processMs, peakMiB].map(Math.round)
    rows.push([`64 KB of ${shape}, ${path}`, ...figures, status].join(' | '))
    expect([path, longestTurnMs <= turnMsMax]).toEqual([path, true])
  })
})
