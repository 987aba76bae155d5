/** The cost of the client package for its host and its rate to the executable, each with its floor in this run. */
import { join } from 'node:path'
import { builtPackage, makeKeys } from '../e2e/sdk-appliance.ts'
import { startAppliance } from '../support/binary.ts'
import { run } from '../support/process.ts'
import { machine, recordTable, table } from './report.ts'

export interface SdkBench {
  runtime: string
  traceUs: { p50: number; p99: number }
  floorUs: { p50: number; p99: number } // an id, the time and the event as text
  bareEventsPerSecond: number // prepared bodies of 1,000 events, sent one after the other
  sent: { eventsPerSecond: number; isSent: boolean; accepted: number; dropped: number }
}

export async function sdkBench(events: number): Promise<SdkBench[]> {
  const packageDir = await builtPackage()
  const results: SdkBench[] = []
  await using appliance = await startAppliance()
  const keys = await makeKeys(appliance)
  for (const [runtime, executable] of [
    ['Bun', process.execPath],
    ['Node.js', 'node'],
  ] as const) {
    const program = join(import.meta.dir, 'sdk-host.mjs')
    const settings = [appliance.url, keys.ingestKey, keys.publishableKey, String(events)]
    const child = run([executable, program, join(packageDir, 'node.js'), ...settings], {
      cwd: import.meta.dir,
      env: { PATH: process.env.PATH ?? '' },
    })
    if ((await child.exited) !== 0) throw new Error(child.stderr())
    results.push({ runtime, ...(JSON.parse(child.stdout()) as Omit<SdkBench, 'runtime'>) })
  }
  return results
}

export function sdkTable(results: SdkBench[]): string {
  const head = [
    'client package',
    'trace p50 µs',
    'p99 µs',
    'floor p50 µs',
    'ratio',
    'events/s',
    'bare fetch',
    'ratio',
  ]
  const rows = results.map(({ runtime, traceUs, floorUs, sent: delivery, bareEventsPerSecond }) => [
    runtime,
    traceUs.p50.toFixed(1),
    traceUs.p99.toFixed(1),
    floorUs.p50.toFixed(1),
    (traceUs.p50 / floorUs.p50).toFixed(1),
    Math.round(delivery.eventsPerSecond),
    Math.round(bareEventsPerSecond),
    (delivery.eventsPerSecond / bareEventsPerSecond).toFixed(2),
  ])
  return table(head, rows)
}

if (import.meta.main) {
  const text = sdkTable(await sdkBench(process.argv.includes('--short') ? 50_000 : 500_000))
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (!process.argv.includes('--short')) recordTable('Client package', text)
}
