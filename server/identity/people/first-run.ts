/** The first owner: made from the environment when it names one, else by a one-time link printed at start. */
import type { Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { newToken, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'
import type { Log } from '../../log.ts'
import { createFirstOwner } from './first-owner.ts'

interface FirstRun {
  store: Store
  admin: { email: string; password: string } | null
  clock: Clock
  log: Log
}

/**
 * Returns the token of a fresh set-up link while there is no owner, else null. A password the rules refuse stops the
 * start (contract §10); an appliance whose disk is full starts without a link, since none could be kept.
 */
export async function prepareFirstOwner({ store, admin, clock, log }: FirstRun): Promise<string | null> {
  if (await store.accounts.ownerExists()) return null
  if (admin) {
    await createFirstOwner(store, { ...admin, linkHash: null, actor: 'system' }, clock)
    return null
  }
  const token = newToken()
  const link = { hash: sha256Hex(token), purpose: 'setup' as const, accountId: null }
  try {
    const expiresAtMs = clock.now() + limits.setupLinkMs
    await store.accounts.createLink({ link: { ...link, expiresAtMs }, audit: null })
    return token
  } catch (error) {
    log.error('setup_link_not_made', { message: error instanceof AppError ? error.message : String(error) })
    return null
  }
}
