/**
 * The law of hostile bodies, on the executable: beside each of them no turn of the HTTP thread takes more than 50 ms of
 * processor time, the process stays below 500 MB, and every sender gets an answer. `SIGHTGLASS_TEST_TABLE=1` prints the
 * cost of each.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { quantile } from '../support/load.ts'
import { isFull } from '../support/runs.ts'
import { startMetered, type Cost, type Metered } from '../support/turns.ts'
import { hostileBodies } from './hostile-bodies.ts'
import type { HostileBody } from './hostile-parts.ts'

const turnMsMax = 50
const residentMiBMax = 500_000_000 / 1024 / 1024

let metered: Metered
let keys: { ingest: string; secret: string }

beforeAll(async () => {
  metered = await startMetered({ args: ['--rate-limit-gateway', 'off', '--rate-limit-ingest', 'off'] })
  const keyOf = async (kind: string): Promise<string> => {
    const made = await metered.appliance.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
    return (JSON.parse(made.stdout) as { key: string }).key
  }
  keys = { ingest: await keyOf('ingest'), secret: await keyOf('secret') }
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
    return await fetch(url + body.path, { method: 'POST', headers, body: Buffer.from(bytes) })
  } finally {
    isAnswered = true
    await beside
  }
}

/** Others of the machine may take the caches of a turn away, so that the best of three attempts counts. */
const attempts = 3

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

describe('beside a hostile body', () => {
  // An everyday run tries a third of the bodies, with others every time.
  const start = Date.now() % 3
  const bodies = hostileBodies.filter((_, index) => isFull || index % 3 === start)
  test.each(bodies.map((body) => [body.name, body] as const))('%s', async (name, body) => {
    const { longestTurnMs, threadMs, processMs, peakMiB, status, answer } = await costOf(body)
    const figures = [longestTurnMs, threadMs, processMs, peakMiB].map(Math.round)
    rows.push([name, ...figures, `${status} ${answer.replaceAll(/[^ -~]+/g, ' ').slice(0, 80)}`].join(' | '))
    expect(body.statuses).toContain(status)
    expect(longestTurnMs).toBeLessThanOrEqual(turnMsMax)
    expect(peakMiB).toBeLessThan(residentMiBMax)
  })
})
