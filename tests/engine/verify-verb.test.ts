/** `sightglass verify` on the executable: clean beside a running server, and the place of each flipped byte. */
import { expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { cli, startAppliance } from '../support/binary.ts'
import { eventsInOrder } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Verdict {
  ok: boolean
  faults: { kind: string; position: number }[]
  events: { orgs: { events: number }[]; faults: { place: string; problem: string }[] }
}

async function verdictOf(dataDir: string, ...words: string[]): Promise<Verdict & { code: number }> {
  const { code, stdout, stderr } = await cli(['verify', ...words, '--json'], { dataDir })
  expect(stderr).toBe('')
  return { code, ...(JSON.parse(stdout) as Verdict) }
}

/** Flips the byte in the middle of `bytes`, which the database file holds once, as a failing disk would. */
function flip(folder: string, bytes: Uint8Array): void {
  const path = join(folder, 'sightglass.db')
  const file = readFileSync(path)
  const start = file.indexOf(bytes)
  expect([start > 0, file.indexOf(bytes, start + 1)]).toEqual([true, -1])
  const position = start + Math.floor(bytes.length / 2)
  const handle = openSync(path, 'r+')
  writeSync(handle, new Uint8Array([file[position]! ^ 0x55]), 0, 1, position)
  closeSync(handle)
}

function blob(folder: string, sql: string): Uint8Array {
  const db = new Database(join(folder, 'sightglass.db'), { readonly: true })
  const row = db.query<{ bytes: Uint8Array | string }, []>(sql).get()
  db.close()
  return Buffer.from(row!.bytes as Uint8Array)
}

test('a flipped byte is located, and the exit code is 1', async () => {
  using temp = tempDir('verify-verb')
  const folder = temp.join('data')
  const appliance = await startAppliance({ dataDir: folder })
  const keyResult = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')
  const { key } = JSON.parse(keyResult.stdout) as { key: string }
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  for (const [index, prefix] of ['a', 'b', 'c'].entries()) {
    const body = JSON.stringify({ events: eventsInOrder(256, prefix, Date.UTC(2026, index, 1)) })
    const response = await fetch(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body })
    expect(response.status).toBe(202)
  }
  const beside = await verdictOf(folder)
  expect(beside).toMatchObject({ code: 0, ok: true, faults: [], events: { faults: [] } })
  expect(beside.events.orgs).toEqual([expect.objectContaining({ events: 768 })])
  const text = await cli(['verify'], { dataDir: folder })
  expect([text.code, text.stdout]).toEqual([
    0,
    expect.stringMatching(/: 768 events, intact[\s\S]*Everything is/),
  ])
  await appliance.stop()

  // Whole blobs: two blocks may begin with the same bytes.
  const second = 'ORDER BY place LIMIT 1 OFFSET 1'
  const damages: [sql: string, place: RegExp][] = [
    [`SELECT bodies AS bytes FROM event_body ${second}`, /^arrivals 257 to 512$/],
    [`SELECT ids AS bytes FROM event_body ${second}`, /^arrivals 257 to 512$/],
    [`SELECT columns AS bytes FROM event_block ${second}`, /^arrivals 257 to 512$/],
  ]
  for (const [index, [sql, place]] of damages.entries()) {
    const copy = temp.join(`damaged-${index}`)
    cpSync(folder, copy, { recursive: true })
    flip(copy, blob(copy, sql))
    const verdict = await verdictOf(copy, 'events')
    expect([sql, verdict.code, verdict.ok]).toEqual([sql, 1, false])
    expect([sql, verdict.events.faults[0]?.place]).toEqual([sql, expect.stringMatching(place)])
  }

  const audit = temp.join('damaged-audit')
  cpSync(folder, audit, { recursive: true })
  flip(audit, blob(audit, "SELECT metadata AS bytes FROM audit_entry WHERE action = 'ingest_key.created'"))
  const trail = await verdictOf(audit)
  expect([trail.code, trail.ok, trail.events.faults]).toEqual([1, false, []])
  expect(trail.faults[0]).toMatchObject({ position: expect.any(Number) })
  const verifyResult = await cli(['verify'], { dataDir: audit })
  expect([verifyResult.code, verifyResult.stdout]).toEqual([
    1,
    expect.stringMatching(/audit position \d+ [\s\S]*NOT everything/),
  ])

  expect((await cli(['verify', 'everything'], { dataDir: folder })).code).toBe(2)
  expect((await cli(['verify'], { dataDir: temp.join('nothing') })).code).toBe(1)
}, 90_000)

test('data of an earlier schema is not reported as changed: it has to be upgraded first', async () => {
  using dir = tempDir('verify-older')
  const dataDir = dir.join('data')
  mkdirSync(dataDir, { mode: 0o700 })
  const packed = readFileSync(join(import.meta.dir, '../store/fixtures/schema-0025.db.zst'))
  writeFileSync(join(dataDir, 'sightglass.db'), Bun.zstdDecompressSync(packed), { mode: 0o600 })
  const refused = await cli(['verify'], { dataDir })
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toMatch(/The data has schema 25; this release requires \d+\..*sightglass migrate up/)
  expect((await cli(['migrate', 'up'], { dataDir })).code).toBe(0)
  expect((await verdictOf(dataDir, 'events')).ok).toBe(true)
})
