/** Makes one attempt at each URL of the command line and prints its failure. Runs where there is no network. */
import { secretBox } from '../../server/system/encryption.ts'
import { addressGuard, resolveWith, systemResolver } from '../../server/webhooks/sinks/addresses.ts'
import { attempt } from '../../server/webhooks/delivery/dispatcher.ts'

for (const url of process.argv.slice(2)) {
  const parts = {
    clock: { now: () => Date.now() },
    box: secretBox([Buffer.alloc(32)]),
    resolve: resolveWith(systemResolver, addressGuard([])),
    version: 'test',
    sinkDir: null,
    ca: null,
    proxy: null,
    timeoutMs: 5_000,
  }
  const times = { scheduledAtMs: 0, nextAttemptAtMs: 0, deliveredAtMs: null }
  const deliveryFields = { id: 'wh_1', orgId: 'org_1', endpointId: null, url, body: '{}' }
  const delivery = {
    ...deliveryFields,
    ...times,
    status: 'pending' as const,
    attempts: 0,
    lastError: null,
    lastStatus: null,
  }
  const claim = {
    isAhead: false,
    retryWaitsMs: null,
    leaseId: 'lea_1',
    lane: 'lane',
    delivery,
    pendingSinceMs: 0,
    encryptedSecrets: [],
  }
  const result = await attempt(
    parts,
    { ...claim, probe: false, failingSinceMs: null },
    new AbortController().signal,
  )
  process.stdout.write(`${JSON.stringify(result.failure)}\n`)
}
