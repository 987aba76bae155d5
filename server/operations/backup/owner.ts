/**
 * Which backups of a folder this appliance made. Several appliances may back up to one folder, such as a network share,
 * and none may delete or judge the backups of another.
 */
import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { applianceOrgId, type AuditHead } from '../../../db/contract/audit.ts'
import { openDatabaseAdmin } from '../../../db/open.ts'
import { readApplianceId, requireApplianceId } from '../../system/appliance-id.ts'

export interface BackupOwner {
  /** Null before the data folder has made a backup. */
  applianceId: string | null
  /** The folder of backups is inside the data folder: a backup without an id is this appliance's. */
  isPrivate: boolean
  /** Whether a database with these audit heads is an earlier state of this appliance's database. */
  isEarlierState(auditHeads: { [orgId: string]: AuditHead }): Promise<boolean>
}

/** Owns every backup: for a folder that only one appliance uses. */
export const anyOwner: BackupOwner = {
  applianceId: null,
  isPrivate: true,
  isEarlierState: async () => true,
}

interface OwnedFolder {
  dataDir: string
  dir: string // of the backups
}

/** Changes nothing: commands that only read must not write. */
export function readOwner({ dataDir, dir }: OwnedFolder): BackupOwner {
  return ownerOf({ dataDir, dir }, readApplianceId(dataDir))
}

/** Creates the id of the data folder when it has none. */
export function requireOwner({ dataDir, dir }: OwnedFolder): BackupOwner & { applianceId: string } {
  const applianceId = requireApplianceId(dataDir)
  return { ...ownerOf({ dataDir, dir }, applianceId), applianceId }
}

function ownerOf({ dataDir, dir }: OwnedFolder, applianceId: string | null): BackupOwner {
  return {
    applianceId,
    isPrivate: isBelow(dir, dataDir),
    isEarlierState: (auditHeads) => isEarlierState(dataDir, auditHeads),
  }
}

/** By real paths, because `backups` may be a link to a share. */
function isBelow(dir: string, dataDir: string): boolean {
  try {
    return realpathSync(dir).startsWith(`${realpathSync(dataDir)}${sep}`)
  } catch {
    return false // a folder that does not exist has no backups
  }
}

/**
 * The chain of the appliance must contain the head, and no restore after it: a database that was restored shares its
 * past with the original.
 */
async function isEarlierState(dataDir: string, auditHeads: { [orgId: string]: AuditHead }): Promise<boolean> {
  const head = auditHeads[applianceOrgId]
  if (head === undefined || head.count === 0) return false
  const { backups } = openDatabaseAdmin(dataDir)
  if (backups.by !== 'copy') return false
  return backups.continues(head).catch(() => false)
}
