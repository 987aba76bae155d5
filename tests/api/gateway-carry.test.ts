/** `export traces|metrics` and `import` of the executable: an export imported into an empty appliance is equal. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { startAppliance, type Appliance, type Exit } from '../support/binary.ts'
import { event, eventsInOrder, type TestEvent } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'

const files = tempDir('carry')
let old: Appliance
let fresh: Appliance
let sentEvents: TestEvent[]

beforeAll(async () => {
  ;[old, fresh] = await Promise.all([startAppliance(), startAppliance()])
  const key = await keyOf(old, 'ingest')
  sentEvents = [
    ...eventsInOrder(1_499, 'c_'),
    event('odd', {
      occurredAt: '2026-07-01T00:00:00Z',
      metadata: { big: 'Grüße "🎈" \u2028', page: '=1+1' },
    }),
  ]
  const texts = sentEvents.map((sentEvent) => JSON.stringify(sentEvent))
  texts[texts.length - 1] = texts.at(-1)!.replace('"durationMs":3', '"durationMs":0.10000000000000000001')
  for (let offset = 0; offset < texts.length; offset += 1_000) {
    const response = await fetch(`${old.url}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' },
      body: texts.slice(offset, offset + 1_000).join('\n'),
    })
    expect(response.status).toBe(202)
  }
}, 90_000)
afterAll(async () => {
  await Promise.all([old.stop(), fresh.stop()])
  files.remove()
})

async function keyOf(appliance: Appliance, kind: string): Promise<string> {
  const keyExit = await appliance.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
  return (JSON.parse(keyExit.stdout) as { key: string }).key
}

async function ndjson(appliance: Appliance): Promise<string> {
  const headers = {
    authorization: `Bearer ${await keyOf(appliance, 'secret')}`,
    accept: 'application/x-ndjson',
  }
  return (await fetch(`${appliance.url}/v1/traces`, { headers })).text()
}

function expectSuccess({ code, stdout, stderr }: Exit): string {
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

test('an export imported into an empty appliance is equal; importing it again changes nothing', async () => {
  const path = files.join('events.ndjson')
  const output = expectSuccess(await old.cli('export', 'traces', '--out', path, '--json'))
  expect(JSON.parse(output)).toEqual({ path, format: 'json', count: 1_500 })
  expect(await Bun.file(path).text()).toBe(await ndjson(old))
  expect(await Bun.file(path).text()).toContain('0.10000000000000000001')

  const first = JSON.parse(expectSuccess(await fresh.cli('import', path, '--json'))) as object
  expect(first).toMatchObject({
    lines: 1_500,
    accepted: 1_500,
    deduped: 0,
    rejected: 0,
    whole: true,
    issues: [],
  })
  expect(await ndjson(fresh)).toBe(await ndjson(old))
  const again = expectSuccess(await fresh.cli('import', path))
  expect(again).toBe('Read 1500 events: 0 stored, 1500 already known, 0 rejected.\n')
  expect(await ndjson(fresh)).toBe(await ndjson(old))
})

test('metrics of both are equal, as JSON and as CSV', async () => {
  const metrics = async (appliance: Appliance) => {
    const text = expectSuccess(await appliance.cli('export', 'metrics', '--filter', 'since=2026-05-01'))
    const { rows, ...otherFields } = JSON.parse(text) as { rows: { orgId: string }[]; total: number }
    return { ...otherFields, rows: rows.map(({ orgId: _, ...row }) => row) }
  }
  const metricsBefore = await metrics(old)
  expect(metricsBefore.total).toBe(1_500)
  expect(await metrics(fresh)).toEqual(metricsBefore)
  const csv = expectSuccess(
    await old.cli('export', 'metrics', '--filter', 'since=2026-05-01', '--format', 'csv'),
  )
  const lines = csv.trimEnd().split('\n')
  expect(lines[0]).toBe('orgId,siteId,bucketStart,type,outcome,count')
  const counts = lines.slice(1).map((line) => Number(line.split(',').at(-1)))
  expect([lines.length - 1, counts.reduce((a, b) => a + b)]).toEqual([metricsBefore.rows.length, 1_500])
})

test('filters as in the API, CSV without formulas, no file is overwritten', async () => {
  const csv = expectSuccess(await old.cli('export', 'traces', '--filter', 'since=2026-07-01', '--format=csv'))
  expect(csv.split('\n')[0]).toStartWith('id,siteId,sessionId,')
  expect(csv).toContain(`,'=1+1,`)
  expect(
    expectSuccess(await old.cli('export', 'traces', '--filter=since=2026-07-01', '--format=csv', '--raw')),
  ).toContain(',=1+1,')
  const path = files.join('existing')
  writeFileSync(path, 'mine')
  const refused = await old.cli('export', 'traces', '--out', path)
  expect([refused.code, refused.stderr]).toEqual([
    1,
    `sightglass: ${path} already exists. (add --yes to replace it)\n`,
  ])
  const wrong = await old.cli('export', 'traces', '--filter', 'nope=1', '--out', files.join('none'))
  expect(wrong.code).toBe(1)
  expect(wrong.stderr).toContain("Unknown parameter 'nope'")
  expect(await Bun.file(files.join('none')).exists()).toBe(false)
  expect(await Bun.file(path).text()).toBe('mine')
})

test('a truncated file, bad lines and other files: valid events are stored, the rest is reported, exit code 1', async () => {
  const good = [event('g1'), event('g2')].map((sentEvent) => JSON.stringify(sentEvent))
  const write = (name: string, lines: string[]) => {
    writeFileSync(files.join(name), lines.join('\n'))
    return files.join(name)
  }
  const cut = await fresh.cli('import', write('cut', [...good, '{"_end":{"count":3}}']))
  expect([cut.code, cut.stdout]).toEqual([
    1,
    'Read 2 events: 2 stored, 0 already known, 0 rejected.\n' +
      'The file is incomplete: its last line has a different count.\n',
  ])
  const bad = await fresh.cli('import', write('bad', [good[0]!, '{"id":7}', 'not json', '', good[1]!]))
  expect(bad.code).toBe(1)
  expect(bad.stdout.split('\n').slice(0, 4)).toEqual([
    'Read 4 events: 0 stored, 2 already known, 2 rejected.',
    '  event 2: id must be a string',
    '  event 3 is not valid JSON',
    'The file has no count in its last line, so it may be incomplete.',
  ])
  const missing = await fresh.cli('import', files.join('nowhere'))
  expect(missing.code).toBe(1)
  expect(missing.stderr).toContain('cannot be read')
  const noOrg = await fresh.cli('import', write('x', good), '--org', 'nobody')
  expect([noOrg.code, noOrg.stderr]).toEqual([
    1,
    'sightglass: No organization "nobody". (sightglass org list)\n',
  ])
})

test('works without a server and through a pipe', async () => {
  const { dataDir } = old
  using otherFolder = tempDir('carried')
  const path = files.join('piped.ndjson')
  expectSuccess(await old.cli('export', 'traces', '--out', path))
  const target = ['--data-dir', otherFolder.join('data')]
  const importProcess = Bun.spawn([process.execPath, 'server/main.ts', 'import', '-', '--json', ...target], {
    cwd: `${import.meta.dir}/../..`,
    stdin: Bun.file(path),
    env: { PATH: process.env.PATH ?? '' },
  })
  expect(JSON.parse(await new Response(importProcess.stdout).text())).toMatchObject({
    accepted: 1_500,
    whole: true,
  })
  const back = Bun.spawnSync([process.execPath, 'server/main.ts', 'export', 'traces', ...target], {
    cwd: `${import.meta.dir}/../..`,
    env: { PATH: process.env.PATH ?? '' },
  })
  expect(back.stdout.toString()).toBe(await Bun.file(path).text())
  expect(dataDir).not.toBe(otherFolder.join('data'))
})
