/** Checks of the data folder and its disk: who may read it, what kind of file system it is, how long the room lasts. */
import { accessSync, constants, existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Checkup } from '../../../db/contract/backup.ts'
import { asideFolders } from '../backup/stage.ts'
import { sizeText } from '../../text/text.ts'
import { failure, ok, warning, type Check } from './check.ts'

export function checkFolder(dataDir: string): Check {
  const stat = statSync(dataDir)
  const mode = stat.mode & 0o777
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EROFS')
      return warning(
        'folder',
        `${dataDir} is on a read-only file system: it can be read and verified, but not served.`,
        'remount it read-write before you start a server',
      )
    return failure(
      'folder',
      `${dataDir} is not writable by this user.`,
      'run as the user that owns it, or change its owner',
    )
  }
  if ((mode & 0o077) !== 0) {
    return failure(
      'folder',
      `${dataDir} is accessible to others (mode ${mode.toString(8)}).`,
      `chmod 700 ${dataDir}`,
    )
  }
  return ok('folder', `${dataDir} is accessible to its owner only.`)
}

/** Secrets, the database and the socket: nothing in the folder is for others, whatever the folder's own mode. */
export function checkFiles(dataDir: string): Check {
  const open = readdirSync(dataDir).filter((name) => {
    const stat = statSync(join(dataDir, name), { throwIfNoEntry: false })
    return stat !== undefined && (stat.mode & 0o077) !== 0
  })
  if (open.length === 0) return ok('files', 'Only the owner can access its files.')
  return warning('files', `Accessible to others: ${open.slice(0, 5).join(', ')}.`, `chmod -R go= ${dataDir}`)
}

const remote: { readonly [type: number]: string } = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x65735546: 'FUSE',
}
const fleeting: { readonly [type: number]: string } = { 0x01021994: 'tmpfs', 0x794c7630: 'overlayfs' }

/** SQLite's locks and shared memory need a local disk, and a record needs one that stays. */
export async function checkFileSystem(dataDir: string): Promise<Check> {
  const type = (await statfs(dataDir)).type >>> 0
  const far = remote[type]
  if (far !== undefined) {
    return failure(
      'file-system',
      `The data is on ${far}, where locks and fsync are not reliable.`,
      'move the data folder to a local disk',
    )
  }
  const gone = fleeting[type]
  if (gone !== undefined) {
    return warning(
      'file-system',
      `The data is on ${gone}: it is lost with the machine or the container.`,
      'put the data folder on a disk or a volume',
    )
  }
  return ok('file-system', `The file system is local (type 0x${type.toString(16)}).`)
}

const soonDays = 14
const farDays = 3_650
const eventsToJudge = 10_000

/** The forecast goes by the events of the last week and what one takes on the disk. */
export async function checkDisk(
  dataDir: string,
  floorBytes: number,
  checkup: Checkup | null,
): Promise<Check> {
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  const room = `${sizeText(free)} are free`
  if (free < floorBytes) {
    return failure(
      'disk',
      `${room}, below the floor of ${sizeText(floorBytes)}: ingest is refused.`,
      'free some space or shorten retention',
    )
  }
  // Few events say little: an empty database has its size too.
  if (checkup === null || checkup.eventsLastWeek === 0 || checkup.facts.events < eventsToJudge) {
    return ok('disk', `${room}.`)
  }
  const bytesADay = ((checkup.bytes / checkup.facts.events) * checkup.eventsLastWeek) / 7
  const days = Math.floor((free - floorBytes) / bytesADay)
  const pace = `at the rate of the last week (${sizeText(bytesADay)} per day)`
  const then = days > farDays ? 'in more than 10 years' : `in ${days} days`
  const forecast = `${room}; ${pace} the disk is full ${then}.`
  return days < soonDays ? warning('disk', forecast, 'add space or shorten retention') : ok('disk', forecast)
}

/** What restores moved aside takes room until somebody is sure. */
export function checkAside(dataDir: string): Check | null {
  const [newest, ...older] = asideFolders(dataDir)
  if (newest === undefined) return null
  const all = [newest, ...older]
  const names = all.length === 1 ? newest : `${newest} and ${older.length} more`
  return warning(
    'replaced-data',
    `A restore moved earlier data aside: ${names}.`,
    'delete it when you are sure; until then "sightglass restore --undo" brings it back',
  )
}

const openFilesMin = 1_024

/** Each connection is an open file. */
export function checkLimits(): Check | null {
  if (!existsSync('/proc/self/limits')) return null
  const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  if (soft === undefined) return null
  return Number(soft) < openFilesMin
    ? warning('limits', `Only ${soft} files may be open.`, 'raise LimitNOFILE in the unit, or ulimit -n')
    : ok('limits', `${soft} files may be open.`)
}
