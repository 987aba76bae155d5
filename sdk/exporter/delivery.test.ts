/** Under any sequence of faults, every event arrives exactly once and in order. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Problem } from '../client/problem.ts'
import { nodePlatform } from '../platform/node-platform.ts'
import { type Fault, ingestKey, startFakeAppliance } from '../../tests/support/fake-appliance.ts'
import { startIntelExporter } from './intel-exporter.ts'

/** What happens to one request. `lost`: stored, but the response does not arrive. */
type Blow = 'none' | 'busy' | 'garbled' | 'lost' | 'slow' | 'small'

const blow = fc.constantFrom<Blow>('none', 'busy', 'garbled', 'lost', 'slow', 'small')
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('trace' as const), count: fc.integer({ min: 1, max: 40 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'flush' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(5) }) },
)

function faultOf(blows: Blow[], url: () => string): Fault {
  return async ({ path, body, headers }) => {
    if (path !== '/v1/sdk/events' || 'x-inner' in headers) return null
    switch (blows.shift() ?? 'none') {
      case 'busy':
        return new Response('{}', { status: 503 })
      case 'garbled':
        return new Response('<html>', { status: 500 })
      case 'slow':
        await Bun.sleep(60) // longer than the exporter waits
        return null
      case 'small':
        return (body['events'] as unknown[]).length > 3 ? new Response('', { status: 413 }) : null
      case 'lost': {
        const inner = { authorization: headers['authorization'] ?? '', 'x-inner': '1' }
        await fetch(`${url()}${path}`, { method: 'POST', body: JSON.stringify(body), headers: inner })
        return new Response('', { status: 502 })
      }
      case 'none':
        return null
    }
  }
}

test('law: exactly once and in order under any faults', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(blow, { maxLength: 8 }),
      fc.array(step, { maxLength: 12 }),
      async (blows, steps) => {
        await using appliance = startFakeAppliance()
        appliance.fault = faultOf([...blows], () => appliance.url)
        appliance.limits = { eventsPerRequestMax: 12 } // learned on the way; then batches are made ahead
        const problems: Problem[] = []
        const exporter = startIntelExporter(
          {
            url: appliance.url,
            ingestKey,
            intervalMs: 2,
            batchEventsMax: 10,
            backoffMinMs: 1,
            backoffMaxMs: 2,
            requestTimeoutMs: 40,
            onError: (problem) => problems.push(problem),
          },
          nodePlatform,
        )
        let next = 0
        const flushes: Promise<boolean>[] = []
        for (const currentStep of steps) {
          if (currentStep.kind === 'flush') flushes.push(exporter.flush(10_000))
          else if (currentStep.kind === 'wait') await Bun.sleep(currentStep.ms)
          else
            for (let index = 0; index < currentStep.count; index++) {
              exporter.export({
                id: `e${next++}`,
                siteId: 's',
                sessionId: 'x',
                occurredAt: '2026-06-23T12:00:00Z',
                type: 'a',
                outcome: 'success',
              })
            }
        }
        expect(await exporter.close(10_000)).toBe(true)
        expect(await Promise.all(flushes)).toEqual(flushes.map(() => true))
        expect(appliance.events.map(({ id }) => id)).toEqual(
          Array.from({ length: next }, (_, index) => `e${index}`),
        )
        const { accepted, deduped, queued, dropped, rejected } = exporter.stats()
        expect([accepted + deduped, queued, dropped, rejected]).toEqual([next, 0, 0, 0])
        expect(problems.filter(({ code }) => code !== 'unreachable')).toEqual([])
      },
    ),
    { numRuns: 40 },
  )
}, 60_000)
