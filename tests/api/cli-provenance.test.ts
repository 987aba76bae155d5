/** `export traces --include record` and `import`: texts survive a move, and no record of elsewhere is believed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import type { EventProvenance } from '../../web/api/event-shapes.ts'
import { startAppliance, type Appliance, type Exit } from '../support/binary.ts'
import { agentsLog } from '../support/agents-log.ts'
import { event } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'

const files = tempDir('cli-provenance')
let old: Appliance

const expectSuccess = ({ code, stdout, stderr }: Exit): string => {
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

beforeAll(async () => {
  old = await startAppliance()
  const log = files.join('access.log')
  writeFileSync(log, agentsLog(Date.now()))
  expectSuccess(await old.cli('import', 'access', log, '--site', 'shop'))
}, 120_000)
afterAll(async () => {
  await old.stop()
  files.remove()
})

interface Line {
  event: { id: string }
  record: EventProvenance
}

async function recordsOf(appliance: Appliance): Promise<{ lines: Line[]; texts: string[] }> {
  const rows = expectSuccess(await appliance.cli('export', 'traces', '--include', 'record'))
    .trimEnd()
    .split('\n')
    .slice(0, -1)
  const plain = expectSuccess(await appliance.cli('export', 'traces'))
    .trimEnd()
    .split('\n')
    .slice(0, -1)
  for (const [index, row] of rows.entries()) expect(row).toStartWith(`{"event":${plain[index]},"record":{`)
  return { lines: rows.map((row) => JSON.parse(row) as Line), texts: plain.toSorted() }
}

test.each(['ndjson', 'parquet'])(
  'an import of %s has the same texts, and verdicts of a sender',
  async (format) => {
    const path = files.join(`events.${format}`)
    const exportArgs = format === 'parquet' ? ['--format', 'parquet'] : ['--include', 'record']
    expectSuccess(await old.cli('export', 'traces', ...exportArgs, '--out', path))
    const source = await recordsOf(old)
    expect(
      source.lines.some(({ record }) => record.judgedBy === 'appliance' && record.verdict === 'verified'),
    ).toBe(true)
    await using fresh = await startAppliance()
    expectSuccess(await fresh.cli('import', path))
    const copy = await recordsOf(fresh)
    expect(copy.texts).toEqual(source.texts)
    for (const { record } of copy.lines) {
      expect([record.door, record.key, record.observedBy, record.network]).toEqual([
        'import',
        null,
        null,
        null,
      ])
      expect(record.judgedBy).toBe(record.verdict === null ? null : 'sender')
    }
  },
  60_000,
)

test('a record in a file is not believed, and a line that only looks like one is an event', async () => {
  const path = files.join('claims.ndjson')
  const claim = event('claim', {
    agent: { class: 'crawler', trust: 'verified', vendor: 'OpenAI', verdict: 'verified' },
  })
  const record = { door: 'access-log', judgedBy: 'appliance', observedBy: 'appliance', verdict: 'verified' }
  const odd = { event: { a: 1 }, ...event('odd') }
  const lines = [
    `{ "event" : ${JSON.stringify(claim).replace('"durationMs":3', '"durationMs":3.00000000000000000001')} , "record" : ${JSON.stringify(record)} }`,
    JSON.stringify(odd),
  ]
  writeFileSync(path, `${lines.join('\n')}\n{"_end":{"count":2}}\n`)
  await using fresh = await startAppliance()
  expectSuccess(await fresh.cli('import', path))
  const { lines: stored } = await recordsOf(fresh)
  const byId = new Map(stored.map((line) => [line.event.id, line]))
  expect(byId.get('claim')!.record).toMatchObject({ door: 'import', judgedBy: 'sender', observedBy: null })
  expect(byId.get('odd')!.event).toEqual(odd)
  const out = files.join('plain.ndjson')
  expectSuccess(await fresh.cli('export', 'traces', '--filter', 'judgedBy=sender', '--out', out))
  expect(readFileSync(out, 'utf8')).toContain('"durationMs":3.00000000000000000001')
  const refused = await fresh.cli('export', 'traces', '--include', 'record', '--format', 'csv')
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--include is for JSON')])
}, 60_000)
