/** A span in protobuf costs a small multiple of an event in JSON. */
import { expect, test } from 'bun:test'
import { otlpBench } from './otlp.bench.ts'

test('spans are decoded, mapped and validated at a quarter of the rate of events or better', () => {
  const { json, spans } = otlpBench(8, 100)
  console.log(`JSON ${json.toFixed(2)} µs per event, protobuf ${spans.toFixed(2)} µs per span`)
  // On an idle machine 2.9. Storing an event costs more than both, so spans are stored at the rate of events.
  expect(spans).toBeLessThan(5 * json)
})
