/** Verifying a signed request costs little more than the runtime's own verification of the signature. */
import { expect, test } from 'bun:test'
import { signatureBench, signatureTable } from './signature.bench.ts'

test('our part costs a fraction of what the runtime needs to verify the signature', async () => {
  const result = await signatureBench({ rounds: 4, roundMs: 60 })
  console.log(signatureTable(result))
  // On an idle machine: 0.2 and 0.4. The whole varies, because the runtime verifies on another thread.
  expect(result.own).toBeLessThan(0.7 * result.floor)
  expect(result.unknown).toBeLessThan(result.floor)
})
