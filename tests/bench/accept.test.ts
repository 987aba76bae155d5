/** Accepting an event costs a small multiple of parsing and serializing it, which every server must do. */
import { expect, test } from 'bun:test'
import { acceptBench, acceptTable } from './accept.bench.ts'

test('accepting costs a small multiple of parsing and serializing, in every form of the body', async () => {
  const result = await acceptBench({ rounds: 4, roundMs: 60 })
  console.log(acceptTable(result))
  // On an idle machine: 1.5, 1.7, 1.6 and 2.3. The bounds allow for other suites beside this one.
  expect(result.accept).toBeLessThan(3 * result.rewrite)
  expect(result.lines).toBeLessThan(3.5 * result.rewrite)
  expect(result.oneBad).toBeLessThan(3.5 * result.rewrite)
  expect(result.spaced).toBeLessThan(4.5 * result.rewrite)
})
