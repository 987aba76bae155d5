/** `export traces --format parquet` and `import` of the executable: folders of days, manifests, damaged files. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parquetReadObjects } from 'hyparquet'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Manifest } from '../../server/parquet/parquet.ts'
import { startAppliance, type Appliance, type Exit } from '../support/binary.ts'
import { eventsInOrder } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'

const files = tempDir('cli-parquet')
let old: Appliance
let fresh: Appliance

/** Three days, an event every two minutes. */
const sentEvents = eventsInOrder(1_500, 'p_').map((sentEvent, index) => ({
  ...sentEvent,
  occurredAt: new Date(Date.UTC(2026, 5, 1) + index * 120_000).toISOString(),
}))

beforeAll(async () => {
  ;[old, fresh] = await Promise.all([startAppliance(), startAppliance()])
  const lines = sentEvents.map((sentEvent) => JSON.stringify(sentEvent))
  lines[7] = lines[7]!.replace('"durationMs":3', '"durationMs":0.10000000000000000001')
  const path = files.join('sent.ndjson')
  writeFileSync(path, `${lines.join('\n')}\n{"_end":{"count":1500}}\n`)
  expectSuccess(await old.cli('import', path))
}, 120_000)
afterAll(async () => {
  await Promise.all([old.stop(), fresh.stop()])
  files.remove()
})

function expectSuccess({ code, stdout, stderr }: Exit): string {
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

const ndjson = async (appliance: Appliance) => expectSuccess(await appliance.cli('export', 'traces'))
const exported = (...extraArgs: string[]) => old.cli('export', 'traces', '--format', 'parquet', ...extraArgs)

async function eventsOf(path: string): Promise<string[]> {
  const compressors = { ZSTD: (bytes: Uint8Array) => Bun.zstdDecompressSync(bytes) }
  const file = await Bun.file(path).arrayBuffer()
  return (await parquetReadObjects({ file, compressors })).map(({ event }) => event as string)
}

test('a folder has a file per day and a manifest, and imports into an empty appliance as the same events', async () => {
  const folder = files.join('days')
  const output = expectSuccess(await exported('--partition', 'day', folder, '--json'))
  expect(JSON.parse(output)).toEqual({ path: folder, format: 'parquet', count: 1_500, files: 3 })
  expect(readdirSync(folder).toSorted()).toEqual([
    'dt=2026-06-01',
    'dt=2026-06-02',
    'dt=2026-06-03',
    'manifest.json',
  ])
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest
  expect(manifest).toMatchObject({ format: 'sightglass.events', schemaVersion: 1, rows: 1_500 })
  expect([manifest.minTime, manifest.maxTime]).toEqual([
    sentEvents[0]!.occurredAt,
    sentEvents.at(-1)!.occurredAt,
  ])
  const texts: string[] = []
  for (const { path, sha256, rows } of manifest.files.toReversed()) {
    expect(new Bun.CryptoHasher('sha256').update(readFileSync(join(folder, path))).digest('hex')).toBe(sha256)
    const eventTexts = await eventsOf(join(folder, path))
    expect(eventTexts.length).toBe(rows)
    texts.push(...eventTexts)
  }
  expect(`${texts.join('\n')}\n{"_end":{"count":1500}}\n`).toBe(await ndjson(old))

  const first = JSON.parse(expectSuccess(await fresh.cli('import', folder, '--json'))) as object
  expect(first).toMatchObject({ lines: 1_500, accepted: 1_500, deduped: 0, rejected: 0, whole: true })
  expect(await ndjson(fresh)).toBe(await ndjson(old))
  const again = 'Read 1500 events: 0 stored, 1500 already known, 0 rejected.\n'
  expect(expectSuccess(await fresh.cli('import', folder))).toBe(again)
  rmSync(join(folder, 'manifest.json'))
  expect(expectSuccess(await fresh.cli('import', folder))).toBe(
    `${again}The folder has no manifest.json, so it may be incomplete.\n`,
  )
}, 60_000)

test('a file, a folder without partitions, filters, and nothing is overwritten without --yes', async () => {
  const file = files.join('one.parquet')
  expect(expectSuccess(await exported('--out', file, '--filter', 'since=2026-06-03'))).toBe(
    `Wrote 60 events to ${file}.\n`,
  )
  expect((await eventsOf(file)).length).toBe(60)
  expect(expectSuccess(await fresh.cli('import', file))).toContain('60 already known')
  const refused = await exported('--out', file)
  expect([refused.code, refused.stderr]).toEqual([
    1,
    `sightglass: ${file} already exists. (add --yes to replace it)\n`,
  ])
  const folder = files.join('whole')
  expectSuccess(await exported(folder))
  expect(readdirSync(folder).toSorted()).toEqual(['manifest.json', 'part-0.parquet'])
  expect((await exported(folder)).stderr).toContain('already exists')
  expectSuccess(await exported(folder, '--partition', 'day', '--yes', '--filter', 'until=2026-06-02'))
  expect(readdirSync(folder).toSorted()).toEqual(['dt=2026-06-01', 'manifest.json'])
  mkdirSync(files.join('mine'))
  writeFileSync(files.join('mine/letter.txt'), 'mine')
  expect((await exported(files.join('mine'), '--yes')).stderr).toContain(
    'is not empty and not of an earlier export',
  )
  for (const wrong of [[], [folder, '--out', file], ['--out', file, '--partition', 'day'], [folder, '--raw']])
    expect((await exported(...wrong)).code).toBe(2)
  expect((await old.cli('export', 'traces', folder)).code).toBe(2)
}, 60_000)

test('an import stores nothing of a folder with a damaged or missing file, or a path outside', async () => {
  const folder = files.join('hostile')
  expectSuccess(await exported('--partition', 'day', folder))
  const manifest = readFileSync(join(folder, 'manifest.json'), 'utf8')
  const part = join(folder, 'dt=2026-06-02/part-0.parquet')
  const whole = readFileSync(part)
  const outcome = async () => {
    const { code, stdout, stderr } = await fresh.cli('import', folder)
    return [code, stdout, stderr.replaceAll(folder, 'DIR')]
  }
  const changed = Buffer.from(whole)
  changed[whole.length >> 1]! ^= 1
  writeFileSync(part, changed)
  expect(await outcome()).toEqual([
    1,
    '',
    'sightglass: DIR/dt=2026-06-02/part-0.parquet cannot be read: it differs from what manifest.json says\n',
  ])
  rmSync(part)
  expect((await outcome())[2]).toContain('part-0.parquet cannot be read')
  writeFileSync(part, whole)
  for (const path of ['../../secret.key', '/etc/passwd', 'dt=2026-06-02/../x.parquet']) {
    writeFileSync(join(folder, 'manifest.json'), manifest.replace('dt=2026-06-02/part-0.parquet', path))
    expect((await outcome())[2]).toContain('it is not the manifest of an export')
  }
  writeFileSync(join(folder, 'manifest.json'), '{')
  expect((await outcome())[2]).toContain('it is not JSON')
  rmSync(join(folder, 'manifest.json'))
  writeFileSync(part, whole.subarray(0, -9))
  expect([(await outcome())[0], (await outcome())[1]]).toEqual([1, ''])
  mkdirSync(files.join('empty'))
  expect((await fresh.cli('import', files.join('empty'))).stderr).toContain(
    'neither a manifest.json nor Parquet',
  )
}, 60_000)
