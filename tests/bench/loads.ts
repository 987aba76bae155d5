/** Loads of numbered events for the executable, and the number of stored events that it reports. */
import type { Appliance } from '../support/binary.ts'
import { load, type LoadResult } from '../support/load.ts'
import { batchEvents, type Traffic } from './fixed-traffic.ts'

export const path = '/v1/sdk/events'
export const connections = 16

/** Sends loads and counts the events that were acknowledged for the first time. */
export interface Runner {
  /** Sends new events, rejected ones first: at most the given number of batches, until the time is up. */
  fresh(options: FreshOptions): Promise<LoadResult>
  /** Sends events that are stored already. */
  old(batches: Iterable<number>, seconds: number, connections: number): Promise<LoadResult>
  acknowledged(): number
}

interface FreshOptions {
  batches?: number
  seconds: number
  /** Called before each request; false ends the load. */
  going?(): boolean
  connections?: number
  requestsPerSecond?: number
}

export function runner(server: Appliance, traffic: Traffic): Runner {
  let next = 0
  let acknowledged = 0
  const again: Uint8Array[] = []
  return {
    async fresh({ batches = Infinity, going = () => true, ...options }) {
      const end = next + batches
      const request = () => (going() ? (again.pop() ?? (next < end ? traffic.request(next++) : null)) : null)
      const refused = (requestBytes: Uint8Array) => void again.push(requestBytes)
      const result = await load({ url: server.url, connections, ...options, next: request, refused })
      acknowledged += result.requests * batchEvents
      return result
    },
    old(batches, seconds, connections) {
      const iterator = batches[Symbol.iterator]()
      const request = () => {
        const { value, done } = iterator.next() as IteratorResult<number, undefined>
        return done ? null : traffic.request(value)
      }
      return load({ url: server.url, connections, seconds, next: request })
    },
    acknowledged: () => acknowledged,
  }
}

export async function keyOf(server: Appliance, kind: string): Promise<string> {
  const keyExit = await server.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
  return (JSON.parse(keyExit.stdout) as { key: string }).key
}

export async function storedEvents(server: Appliance, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${server.url}/v1/metrics`, { headers })
  return ((await response.json()) as { total: number }).total
}
