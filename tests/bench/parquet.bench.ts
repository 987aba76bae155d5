/**
 * Parquet beside CSV of the same events: the processor time to encode one. With --full the rate at which the executable
 * exports a million events (`--events N`: other counts), and how much memory that adds to the server.
 */
import { writeFileSync } from 'node:fs'
import { eventRows } from '../../server/api/traces/export.ts'
import { eventEncoder } from '../../server/parquet/events.ts'
import { cli, startAppliance } from '../support/binary.ts'
import { eventsInOrder } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'
import { perSecond, processorSeconds, recordTable, residentMiB, table, watchMemory } from './report.ts'

const events = 20_000

/** With different ids, sessions, pages and agents, about 430 bytes each. */
function jsonOf(index: number): string {
  const [testEvent] = eventsInOrder(
    1,
    `bench_${Bun.hash(String(index)).toString(36)}_`,
    Date.UTC(2026, 9, 1) + index * 900,
  )
  const agent = {
    class: 'dom',
    trust: 'declared',
    vendor: `vendor-${index % 37}`,
    name: `agent-${index % 91}`,
  }
  const metadata = {
    page: `/p/${index % 700}`,
    protocol: 'mcp',
    status: 200,
    bytes: index % 4_000,
    subject: `s${index % 999}`,
  }
  return JSON.stringify({
    ...testEvent,
    sessionId: `sess_${index >> 4}`,
    durationMs: index % 1_000,
    agent,
    metadata,
  })
}

const jsons = Array.from({ length: events }, (_, index) => jsonOf(index))

const runs = {
  csv: () => {
    for (let offset = 0; offset < events; offset += 250)
      eventRows(
        jsons.slice(offset, offset + 250).map((json) => ({ json, receivedAtMs: offset })),
        true,
      )
  },
  parquet: () => {
    const encoder = eventEncoder('org_1', 'bench')
    jsons.forEach((json, index) => encoder.add({ json, occurredAtMs: index, receivedAtMs: index }))
    encoder.end()
  },
}

/** µs of processor time per event, the best of several alternating rounds. */
export function parquetBench(rounds: number): { csv: number; parquet: number } {
  const best = { csv: Infinity, parquet: Infinity }
  for (let round = 0; round < rounds; round++) {
    for (const name of ['csv', 'parquet'] as const) {
      const usageBefore = process.cpuUsage()
      runs[name]()
      const { user, system } = process.cpuUsage(usageBefore)
      best[name] = Math.min(best[name], (user + system) / events)
    }
  }
  return best
}

interface Exported {
  format: string
  seconds: number
  processorSeconds: number
  bytes: number
  addedMiB: number
}

async function exported(total: number): Promise<Exported[]> {
  using files = tempDir('parquet-bench')
  await using appliance = await startAppliance()
  const path = files.join('events.ndjson')
  const lines = Array.from({ length: total }, (_, index) => jsonOf(index))
  writeFileSync(path, `${lines.join('\n')}\n{"_end":{"count":${total}}}\n`)
  const imported = await cli(['import', path], { dataDir: appliance.dataDir, timeoutMs: 600_000 })
  if (imported.code !== 0) throw new Error(imported.stdout + imported.stderr)
  const keyExit = await appliance.cli('key', 'create', '--kind', 'secret', '--label', 'bench', '--json')
  const { key } = JSON.parse(keyExit.stdout) as { key: string }
  const results: Exported[] = []
  for (const [format, accept] of [
    ['NDJSON', 'application/x-ndjson'],
    ['Parquet', 'application/vnd.apache.parquet'],
    ['Parquet', 'application/vnd.apache.parquet'],
  ] as const) {
    const memory = watchMemory(appliance.pid)
    const beforeMiB = residentMiB(appliance.pid)
    const usedBefore = processorSeconds(appliance.pid)
    const startedMs = performance.now()
    const headers = { authorization: `Bearer ${key}`, accept }
    let bytes = 0
    for await (const part of (await fetch(`${appliance.url}/v1/traces`, { headers })).body!)
      bytes += part.length
    const seconds = (performance.now() - startedMs) / 1_000
    const { mostMiB } = memory.end()
    const usedSeconds = processorSeconds(appliance.pid) - usedBefore
    results.push({ format, seconds, processorSeconds: usedSeconds, bytes, addedMiB: mostMiB - beforeMiB })
  }
  return results
}

async function main(): Promise<void> {
  const { csv, parquet } = parquetBench(12)
  console.info(`CSV ${csv.toFixed(2)} µs per event, Parquet ${parquet.toFixed(2)} µs per event`)
  if (!process.argv.includes('--full')) return
  const optionIndex = process.argv.indexOf('--events')
  const total = optionIndex === -1 ? 1_000_000 : Number(process.argv[optionIndex + 1])
  const rows = (await exported(total)).map(
    ({ format, seconds, processorSeconds: cpuSeconds, bytes, addedMiB }) => [
      format,
      perSecond(total, seconds * 1_000),
      `${((cpuSeconds * 1e6) / total).toFixed(1)} µs`,
      `${(bytes / 2 ** 20).toFixed(0)} MiB`,
      `${addedMiB.toFixed(0)} MiB`,
    ],
  )
  const text = table(
    [`${total.toLocaleString('en')} events as`, 'rate', 'processor time per event', 'size', 'memory added'],
    rows,
  )
  recordTable('Parquet export', text)
  console.info(text)
}

if (import.meta.main) await main()
