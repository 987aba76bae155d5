/** The executable near the end of its memory: sheds reads, then everything, then ends to be started afresh. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

let dir: TempDir
beforeAll(() => void (dir = tempDir('memory')))
afterAll(() => dir.remove())

/** What it uses when it has nothing to do, by which the limits below are chosen. */
let idleBytes = 0
function residentBytes({ pid }: Appliance): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kib) * 1024
}

async function limited(share: number): Promise<Appliance> {
  return startAppliance({
    args: ['--memory-limit', String(Math.round(idleBytes / share))],
    dataDir: dir.join(`at-${share}`),
  })
}

async function status(url: string, init: RequestInit = {}): Promise<number> {
  return (await fetch(url, init)).status
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const deadlineMs = performance.now() + 15_000; !(await holds()); await Bun.sleep(100))
    if (performance.now() > deadlineMs) throw new Error('it did not come true in 15 s')
}

test('with room nothing is shed, and readiness says how much is used', async () => {
  await using appliance = await startAppliance({ dataDir: dir.join('free') })
  await Bun.sleep(2_500)
  idleBytes = residentBytes(appliance)
  const ready = (await (await fetch(`${appliance.url}/readyz`)).json()) as {
    checks: { name: string; ok: boolean }[]
  }
  expect(ready.checks.find(({ name }) => name === 'memory')).toMatchObject({ ok: true })
})

test('near the limit reads wait while ingest goes on', async () => {
  await using appliance = await limited(0.77)
  const made = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')
  const { key } = JSON.parse(made.stdout) as { key: string }
  await until(async () => (await status(`${appliance.url}/v1/traces`)) === 503)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ events: [event('under_pressure')] })
  expect(await status(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body })).toBe(202)
  const shed = await fetch(`${appliance.url}/v1/traces`)
  expect([shed.status, shed.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^[1-5]$/)])
  expect(await shed.json()).toMatchObject({ error: 'overloaded' })
  expect([await status(`${appliance.url}/healthz`), await status(`${appliance.url}/readyz`)]).toEqual([
    200, 503,
  ])
})

test('above the limit it ends in good order with code 0, for its supervisor to start it afresh', async () => {
  const appliance = await limited(1.5)
  await until(async () => appliance.stderr().includes('memory_exhausted'))
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
