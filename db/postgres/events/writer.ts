/**
 * The verbs that delete and repair stored events, each in the open transaction of its thread. Events are appended by
 * `append/`, and counted, sealed and merged by `upkeep/`.
 */
import { StoreError } from '../../contract/errors.ts'
import { deletions } from '../../sql/events/delete/delete.ts'
import { dropRollups } from '../../sql/events/delete/expire.ts'
import { readSeed } from '../../sql/events/dedupe/fingerprints.ts'
import { expireNetworks } from '../../sql/events/blocks/networks.ts'
import { repairRollups } from '../../sql/events/rollups/recount.ts'
import { openOrgs } from '../../sql/events/write/org-state.ts'
import { expireAccess } from '../../sql/access/access-logs.ts'
import { lockEvents } from '../locks.ts'
import { deletedFromTable } from './ids.ts'
import type { Database } from '../../sql/database.ts'
import type { EventWriter } from '../../sql/events/engine.ts'

export function postgresEventWriter(db: Database): EventWriter {
  const seed = readSeed(db)
  const orgs = openOrgs(db, seed.values)
  const ids = deletedFromTable(db, seed)
  const deletes = deletions(db, {
    orgs,
    ids,
    seal: { forget() {} },
    spare: [],
    hashSeed: seed.values,
  })

  /** Other nodes may have changed everything since the last verb. */
  function lock(orgId: string): number {
    const num = lockEvents(db, orgId)
    orgs.forget()
    return num
  }

  return {
    append: refuse,
    flush: refuse,
    removeSite(orgId, siteId) {
      lock(orgId)
      return deletes.removeSite(orgId, siteId)
    },
    removeOrg(orgId) {
      lock(orgId)
      deletes.removeOrg(orgId)
    },
    expire(command, tight) {
      lock(command.orgId)
      return deletes.expire(command, tight)
    },
    erase(command, range) {
      lock(command.orgId)
      return deletes.erase(command, range)
    },
    dropRollups: ({ orgId, beforeMs }) => dropRollups(db, lock(orgId), beforeMs),
    expireAccess(command) {
      lock(command.orgId)
      return expireAccess(db, command)
    },
    expireNetworks: (beforeDay) => expireNetworks(db, beforeDay),
    repair: ({ orgId, repairs }) => repairRollups(db, lock(orgId), repairs),
    committed: deletes.committed,
    rolledBack() {
      deletes.undone()
      orgs.forget()
    },
    idle() {},
    spare: () => false,
    close() {},
  }
}

function refuse(): never {
  throw new StoreError('internal', 'this thread does not append events')
}
