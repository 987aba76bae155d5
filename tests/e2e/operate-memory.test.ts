/** The executable near its memory limit: rejects reads, then everything, then exits to be restarted. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { openStalled, postHead, type Stalled } from '../support/stalled.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

let dir: TempDir
beforeAll(() => void (dir = tempDir('memory')))
afterAll(() => dir.remove())

/** The smallest limit that it accepts, as it says itself. An idle server uses some MiB more or less at each start. */
let leastMemory = ''

const leastOf = (refusal: string): string | undefined => /needs at least (\d+MiB)/.exec(refusal)?.[1]

async function limited(name: string): Promise<Appliance> {
  // With the runtime options of `npm test` it would never return memory.
  const start = () =>
    startAppliance({ args: ['--memory-limit', leastMemory], dataDir: dir.join(name), restarts: true })
  return start().catch((refusal: Error) => {
    const nextMemory = leastOf(refusal.message)
    if (nextMemory === undefined) throw refusal
    leastMemory = nextMemory
    return start()
  })
}

async function keysOf(appliance: Appliance, org = 'default'): Promise<string[]> {
  const keyExits = ['a', 'b'].map((label) =>
    appliance.cli('key', 'create', '--kind', 'ingest', '--org', org, '--label', label, '--json'),
  )
  return (await Promise.all(keyExits)).map(({ stdout }) => (JSON.parse(stdout) as { key: string }).key)
}

/** Bodies that do not end fill the memory, 3 MB after 3 MB, until it is so. */
async function fillUntil(
  appliance: Appliance,
  keys: string[],
  holds: () => Promise<boolean>,
): Promise<() => void> {
  const part = Buffer.alloc(3_000_000, ' ')
  const open: Stalled[] = []
  await until(async () => {
    if (await holds()) return true
    const key = keys[open.length % keys.length]!
    open.push(await openStalled(appliance.url, postHead(key, part.length + 1), part))
    await Bun.sleep(900) // the memory is checked once per second
    return false
  })
  return () => open.forEach((stalledRequest) => stalledRequest.end())
}

async function status(url: string, init: RequestInit = {}): Promise<number> {
  return (await fetch(url, init)).status
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const deadlineMs = performance.now() + 40_000; !(await holds()); await Bun.sleep(100))
    if (performance.now() > deadlineMs) throw new Error('it did not come true in 40 s')
}

test('below the limit nothing is refused, and readiness reports the memory in use', async () => {
  await using appliance = await startAppliance({ dataDir: dir.join('free') })
  const ready = (await (await fetch(`${appliance.url}/readyz`)).json()) as {
    checks: { name: string; ok: boolean }[]
  }
  expect(ready.checks.find(({ name }) => name === 'memory')).toMatchObject({ ok: true })
})

test('a memory limit that is too small is refused at start with the smallest valid one', async () => {
  const serve = ['serve', '--listen', '127.0.0.1:0', '--memory-limit', '90MiB']
  const refused = await cli(serve, { dataDir: dir.join('small'), asUsers: true })
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr.trim().split('\n').at(-1)).toMatch(
    /--memory-limit 90\.0 MiB is too small: the idle server uses [\d.]+ MiB and needs at least \d+MiB$/,
  )
  leastMemory = leastOf(refused.stderr) ?? ''
  await using appliance = await limited('small')
  for (let looks = 0; looks < 3; looks++, await Bun.sleep(1_000))
    expect(await status(`${appliance.url}/v1/traces`)).toBe(401)
})

test('with less than a gigabyte the heaps are collected sooner', async () => {
  const heapOf = ({ pid }: Appliance) =>
    /BUN_JSC_largeHeapSize=(\d+)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1]
  await using free = await startAppliance({ dataDir: dir.join('large'), restarts: true })
  await using tight = await limited('tight')
  expect([heapOf(free), heapOf(tight)]).toEqual([`${64 * 1024 * 1024}`, `${8 * 1024 * 1024}`])
})

test('near the limit reads wait while ingest continues', async () => {
  await using appliance = await limited('near')
  const keys = await keysOf(appliance)
  const headers = { authorization: `Bearer ${keys[0]}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ events: [event('under_pressure')] })
  const read = () => fetch(`${appliance.url}/v1/traces`)
  let pressureAnswers: unknown
  // Between two checks of the memory it may be free again: what counts was answered between two rejected reads.
  const end = await fillUntil(appliance, keys, async () => {
    const shed = await read()
    if (shed.status !== 503) return false
    pressureAnswers = {
      retryAfter: shed.headers.get('retry-after'),
      answer: await shed.json(),
      ingest: await status(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body }),
      health: await status(`${appliance.url}/healthz`),
      ready: await status(`${appliance.url}/readyz`),
    }
    return (await read()).status === 503
  })
  expect(pressureAnswers).toEqual({
    retryAfter: expect.stringMatching(/^[1-5]$/),
    answer: expect.objectContaining({ error: 'overloaded' }),
    ingest: 202,
    health: 200,
    ready: 503,
  })
  end()
})

test('above the limit the server stops gracefully with code 0, so that its supervisor restarts it', async () => {
  const appliance = await limited('above')
  const keys = await keysOf(appliance) // one organization alone has too small a share of bodies to fill the memory
  for (const org of ['second', 'third']) {
    await appliance.cli('org', 'create', '--name', org, '--slug', org)
    keys.push(...(await keysOf(appliance, org)))
  }
  // Begun while there was room: later ones would be turned away.
  const bytes = 2_000_000
  const uploads = keys.flatMap((key) =>
    Array.from({ length: 12 }, () => openStalled(appliance.url, postHead(key, bytes))),
  )
  const bodies = await Promise.all(uploads)
  for (const body of bodies) body.send(Buffer.alloc(bytes - 1, ' '))
  await until(async () => appliance.stderr().includes('memory_exhausted'))
  for (const body of bodies) body.end()
  await until(async () => !isAlive(appliance.pid))
  const { code, stderr } = await appliance.stop()
  expect(code).toBe(0)
  expect(stderr).toContain('"event":"stopped"')
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
