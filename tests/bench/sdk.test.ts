/** The client package costs little more than any sender must: serializing events and posting bodies one by one. */
import { expect, test } from 'bun:test'
import { sdkBench, sdkTable } from './sdk.bench.ts'

test('tracing costs a small multiple of writing the event, sending a share of bare posts, and nothing is lost', async () => {
  const results = await sdkBench(10_000)
  console.log(sdkTable(results))
  for (const { traceUs, floorUs, sent: delivery, bareEventsPerSecond } of results) {
    // On an idle machine: 2.5 and 1.2, and 0.9 of bare posts. The bounds allow for other suites beside this one.
    expect(traceUs.p50).toBeLessThan(4 * floorUs.p50)
    expect(delivery.eventsPerSecond).toBeGreaterThan(0.25 * bareEventsPerSecond)
    expect(delivery).toMatchObject({ isSent: true, accepted: 35_000, dropped: 0 })
  }
}, 120_000)
