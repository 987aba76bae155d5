/** The executable under concurrent ingest, paging, exports and searches: every event exactly once, no one blocked. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { isFull } from '../support/runs.ts'

let server: Appliance
let ingest: string
let secret: string

beforeAll(async () => {
  server = await startAppliance({ args: ['--rate-limit-gateway', 'off'] })
  const keyOf = async (kind: string) =>
    (
      JSON.parse((await server.cli('key', 'create', '--kind', kind, '--label', kind, '--json')).stdout) as {
        key: string
      }
    ).key
  ingest = await keyOf('ingest')
  secret = await keyOf('secret')
}, 90_000)
afterAll(() => server.stop())

const stored = new Set<string>()
const startMs = Date.UTC(2026, 5, 1)

/** Posts batches with times across the range until `until` is true; returns their durations. */
async function send(name: string, until: () => boolean): Promise<number[]> {
  const took: number[] = []
  for (let batch = 0; !until(); batch++) {
    const events = Array.from({ length: 100 }, (_, n) =>
      event(`${name}_${batch}_${n}`, {
        occurredAt: new Date(startMs + ((batch * 7_919 + n * 104_729) % 86_400_000)).toISOString(),
        siteId: `site-${n % 3}`,
        outcome: n % 2 === 0 ? 'success' : 'blocked',
      }),
    )
    const startedMs = performance.now()
    const response = await fetch(`${server.url}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ingest}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events }),
    })
    expect(response.status).toBe(202)
    took.push(performance.now() - startedMs)
    for (const { id } of events) stored.add(id)
  }
  return took
}

const get = (query: string, accept = 'application/json') =>
  fetch(`${server.url}/v1/traces${query}`, { headers: { authorization: `Bearer ${secret}`, accept } })

/** Pages to the end and returns the ids. */
async function walk(limit: number): Promise<string[]> {
  const ids: string[] = []
  let cursor = ''
  for (;;) {
    const response = await get(`?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`)
    expect(response.status).toBe(200)
    const page = (await response.json()) as { events: { id: string }[]; nextCursor: string | null }
    if (cursor !== '') expect(page.events.length).toBeGreaterThan(0)
    ids.push(...page.events.map(({ id }) => id))
    if (page.nextCursor === null) return ids
    cursor = page.nextCursor
  }
}

async function exported(accept: string): Promise<string[]> {
  const text = await (await get('', accept)).text()
  return text
    .trimEnd()
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { id: string }).id)
}

function expectWhole(ids: string[], atLeast: ReadonlySet<string>): void {
  const idSet = new Set(ids)
  expect(idSet.size).toBe(ids.length) // none twice
  expect([...atLeast].filter((id) => !idSet.has(id))).toEqual([]) // every acknowledged event is there
  expect(ids.filter((id) => !/^[ab]_/.test(id))).toEqual([])
}

test('pages and exports during ingest have every event acknowledged before they began, once', async () => {
  const endMs = performance.now() + (isFull ? 1_200 : 400)
  const senders = ['a', 'b'].map((name) => send(name, () => performance.now() > endMs))
  const readers = [50, 200].map(async (limit) => {
    while (performance.now() < endMs) {
      const storedBefore = new Set(stored)
      expectWhole(await walk(limit), storedBefore)
    }
  })
  const exporter = async () => {
    while (performance.now() < endMs) {
      const storedBefore = new Set(stored)
      expectWhole(await exported('application/x-ndjson'), storedBefore)
    }
  }
  const searcher = async () => {
    while (performance.now() < endMs) {
      const response = await get('?since=2026-01-01&q=no%20event%20says%20this')
      expect(response.status).toBe(200)
      const { events } = (await response.json()) as { events: unknown[] }
      expect(events).toEqual([])
    }
  }
  const [took] = await Promise.all([Promise.all(senders), ...readers, exporter(), searcher()])
  const durations = took!.flat().sort((a, b) => a - b)
  expect(durations[Math.floor(durations.length * 0.9)]).toBeLessThan(2_000) // no reader blocks the writer
  const final = await walk(200)
  expect(new Set(final)).toEqual(stored)
  expect(final.length).toBe(stored.size)
  expect(new Set(await exported('application/x-ndjson'))).toEqual(stored)
  const metrics = (await (
    await fetch(`${server.url}/v1/metrics?since=2026-01-01`, {
      headers: { authorization: `Bearer ${secret}` },
    })
  ).json()) as { total: number }
  expect(metrics.total).toBe(stored.size)
}, 90_000)
