/** Applies the set-up file before the server opens its listeners: the first request finds the keys it names. */
import { StoreError } from '../../../db/contract/errors.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import { lazySecretBox } from '../../system/secrets.ts'
import { addressGuard } from '../../webhooks/delivery/address-guard.ts'
import { resolveWith, systemResolver } from '../../webhooks/delivery/resolve.ts'
import { applySetup } from './apply.ts'
import type { Setup } from './form.ts'

interface Start {
  config: { dataDir: string; webhooks: { allow: string[]; sinkDir: string | null } }
  store: Store
  clock: Clock
  log: Log
}

/** A mistake in the file ends the start; a full disk does not, because the appliance starts on one (contract §10). */
export async function setUpAtStart({ config, store, clock, log }: Start, setup: Setup): Promise<void> {
  const { allow, sinkDir } = config.webhooks
  const resolve = resolveWith(systemResolver, addressGuard(allow))
  const services = { store, clock, box: lazySecretBox(config.dataDir), resolve, sinkDir }
  try {
    const changes = await applySetup(services, setup, { actor: 'system', dryRun: false })
    for (const change of changes) if (change.did !== 'unchanged') log.info('setup', { ...change })
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'storage_full') throw error
    log.error('setup_not_applied', { message: error.message })
  }
}
