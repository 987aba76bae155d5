/**
 * The id of a data folder. What the appliance writes into folders that others use too carries it, so that the appliance
 * recognizes its own. It is in no backup: a folder that `restore` fills elsewhere is another appliance.
 */
import { join } from 'node:path'
import { makeOnce } from '../../db/rules/durable-files.ts'
import { readTextFile } from '../../db/rules/regular-files.ts'
import { newApplianceId } from '../ids.ts'

const form = /^[0-9a-f]{32}$/

const pathIn = (dataDir: string): string => join(dataDir, 'appliance-id')

/** Null before the folder has one, and for a damaged file: what was written under it then belongs to nobody. */
export function readApplianceId(dataDir: string): string | null {
  try {
    const text = readTextFile(pathIn(dataDir)).trim()
    return form.test(text) ? text : null
  } catch {
    return null
  }
}

/** Creates the id of a folder that has none. */
export function requireApplianceId(dataDir: string): string {
  return readApplianceId(dataDir) ?? makeOnce(pathIn(dataDir), `${newApplianceId()}\n`).trim()
}
