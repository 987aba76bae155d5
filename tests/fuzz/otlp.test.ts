/** Mutated OTLP requests: the short form of `otlp-mutations.ts`. */
import { expect, test } from 'bun:test'
import { runMutations } from './otlp-mutations.ts'

test('a mutated request is decoded or refused with a 400, and nothing else happens', () => {
  const sum = runMutations(4_000, 20_261_123)
  expect(sum.accepted + sum.refused).toBe(4_000)
  expect(sum.accepted).toBeGreaterThan(400)
  expect(sum.refused).toBeGreaterThan(1_000)
  expect(sum.events).toBeGreaterThan(1_000)
  expect(sum.slowestMs).toBeLessThan(1_000)
})
