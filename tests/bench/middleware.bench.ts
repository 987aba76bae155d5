/** What the middleware adds to a request, and a recorder to a call of a tool, beside the least that a recorder does. */
import { join } from 'node:path'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import type { MiddlewareCosts, Times } from './middleware-host.ts'
import { machine, recordTable, table } from './report.ts'

export interface MiddlewareBench extends MiddlewareCosts {
  runtime: string
}

export async function middlewareBench(requests: number): Promise<MiddlewareBench[]> {
  using dir = tempDir('middleware')
  const entrypoints = [join(import.meta.dir, 'middleware-host.ts')]
  await Bun.build({ entrypoints, outdir: dir.path, target: 'node' })
  const results: MiddlewareBench[] = []
  for (const [runtime, executable] of Object.entries({ Bun: process.execPath, 'Node.js': 'node' })) {
    const command = [executable, dir.join('middleware-host.js'), String(requests)]
    const child = run(command, { cwd: dir.path, env: { PATH: process.env.PATH ?? '' } })
    if ((await child.exited) !== 0) throw new Error(child.stderr())
    results.push({ runtime, ...(JSON.parse(child.stdout()) as MiddlewareCosts) })
  }
  return results
}

export function middlewareTable(results: MiddlewareBench[]): string {
  const rows = results.flatMap(({ runtime, floor, whole, bareTool, ...costs }) => {
    const row = (name: string, { p50, p99 }: Times, base: Times) => [
      `${runtime}: ${name}`,
      p50.toFixed(1),
      p99.toFixed(1),
      (p50 / base.p50).toFixed(1),
      (p99 / base.p99).toFixed(1),
    ]
    return [
      row('floor: id, time and event as text', floor, floor),
      row('request by an agent', costs.agent, floor),
      row('the same, until its response', costs.before, floor),
      row('request by an agent, signed, until its response', costs.signed, floor),
      row('request of a person', costs.person, floor),
      [`${runtime}: request by an agent, all processor time with delivery`, whole.toFixed(1), '', '', ''],
      row('floor: call of a bare tool', bareTool, bareTool),
      row('call of a recorded tool', costs.recordedTool, bareTool),
    ]
  })
  return table(
    ['added to a request, or the call of a tool', 'p50 µs', 'p99 µs', 'p50 × floor', 'p99 × floor'],
    rows,
  )
}

if (import.meta.main) {
  const text = middlewareTable(await middlewareBench(process.argv.includes('--full') ? 100_000 : 20_000))
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (process.argv.includes('--full')) recordTable('Middleware and recorded tools', text)
}
