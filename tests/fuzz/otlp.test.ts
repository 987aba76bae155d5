/** OTLP requests: the short forms of `otlp-mutations.ts` and `otlp-decoders.ts`. */
import { expect, test } from 'bun:test'
import { compareDecoders, compareQuickly } from './otlp-decoders.ts'
import { runMutations } from './otlp-mutations.ts'

test('random spans and log records in protobuf and JSON are those that protobufjs reads', () => {
  expect(compareDecoders(100)).toBeGreaterThan(200)
  expect(compareQuickly(500, 20_261_123)).toBeGreaterThanOrEqual(1_000)
})

test('a mutated request is decoded or refused with a 400, and nothing else happens', () => {
  const sum = runMutations(4_000, 20_261_123)
  expect(sum.accepted + sum.refused).toBe(4_000)
  expect(sum.accepted).toBeGreaterThan(400)
  expect(sum.refused).toBeGreaterThan(1_000)
  expect(sum.events).toBeGreaterThan(1_000)
  // The processor time of the slowest, beside that of all 4,000: no request costs as much as a thousand others.
  expect(sum.slowestMs).toBeLessThan(sum.totalMs / 4)
})
