/** Verifying a signed request costs little more than the runtime's own verification of the signature. */
import { expect, test } from 'bun:test'
import { signatureBench, signatureTable } from './signature.bench.ts'

test('verifying a request costs a small multiple of verifying its signature', async () => {
  const result = await signatureBench({ rounds: 4, roundMs: 60 })
  console.log(signatureTable(result))
  expect(result.verify).toBeLessThan(3 * result.floor)
  expect(result.unknown).toBeLessThan(result.floor)
})
