/** Posts slowly beside an overload, in a process of its own, because the process that overloads is itself late. */
import { load, type LoadResult } from '../support/load.ts'
import { batchEvents, fixedTraffic } from './fixed-traffic.ts'

/** Outside the numbers of all other traffic. */
const firstBatch = 10_000_000

const connections = 50
const requestsPerSecond = 250

let probes = 0

/** Runs for `seconds`. Accepted events count as acknowledged, like all others. */
export async function probeRefusals(
  url: string,
  key: string,
  seconds: number,
): Promise<Pick<LoadResult, 'requests' | 'refusedP99Ms'>> {
  const numbers = [String(seconds), String(probes++)]
  const child = Bun.spawn([process.execPath, import.meta.path, url, key, ...numbers], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const text = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error('the probe of refusals failed')
  return JSON.parse(text) as LoadResult
}

if (import.meta.main) {
  const [url = '', key = '', seconds, probe] = process.argv.slice(2)
  const traffic = fixedTraffic('/v1/sdk/events', key, 0, 0)
  const requests = Math.ceil(Number(seconds) * requestsPerSecond) + connections
  let next = firstBatch + Number(probe) * requests
  const posts = Array.from({ length: requests }, () => traffic.request(next++))
  const options = { url, connections, requestsPerSecond, seconds: Number(seconds) }
  const result = await load({ ...options, next: () => posts.pop() ?? null })
  process.stdout.write(JSON.stringify(result))
}
