/** Checks of the data folder and its disk: permissions, file system, free space, limits of the process. */
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
        `${dataDir} is on a read-only file system: the data can be read and verified, but no server can start.`,
        'mount it read-write before you start a server',
      )
    return failure(
      'folder',
      `This user cannot write to ${dataDir}.`,
      'run as its owner, or change its owner with chown',
    )
  }
  if ((mode & 0o077) !== 0) {
    return failure(
      'folder',
      `Other users can access ${dataDir} (mode ${mode.toString(8)}).`,
      `chmod 700 ${dataDir}`,
    )
  }
  return ok('folder', `Only the owner can access ${dataDir}.`)
}

/** No file in the folder may be accessible to others, whatever the mode of the folder. */
export function checkFiles(dataDir: string): Check {
  const open = readdirSync(dataDir).filter((name) => {
    const stat = statSync(join(dataDir, name), { throwIfNoEntry: false })
    return stat !== undefined && (stat.mode & 0o077) !== 0
  })
  if (open.length === 0) return ok('files', 'Only the owner can access its files.')
  return warning('files', `Other users can access ${open.slice(0, 5).join(', ')}.`, `chmod -R go= ${dataDir}`)
}

const remoteTypes: { readonly [type: number]: string } = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x65735546: 'FUSE',
}
const temporaryTypes: { readonly [type: number]: string } = { 0x01021994: 'tmpfs', 0x794c7630: 'overlayfs' }

/** SQLite's locks and shared memory need a local disk, and evidence needs a persistent one. */
export async function checkFileSystem(dataDir: string): Promise<Check> {
  const type = (await statfs(dataDir)).type >>> 0
  const far = remoteTypes[type]
  if (far !== undefined) {
    return failure(
      'file-system',
      `The data is on ${far}, where locks and fsync are not reliable.`,
      'move the data folder to a local disk',
    )
  }
  const gone = temporaryTypes[type]
  if (gone !== undefined) {
    return warning(
      'file-system',
      `The data is on ${gone}: it is lost with the machine or the container.`,
      'move the data folder to a disk or a volume',
    )
  }
  return ok('file-system', `Local file system (type 0x${type.toString(16)}).`)
}

const soonDays = 14
const farDays = 3_650
const forecastEventsMin = 10_000

/** Forecast: events of the last 7 days times the average size of an event on disk. */
export async function checkDisk(
  dataDir: string,
  floorBytes: number,
  checkup: Checkup | null,
): Promise<Check> {
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  const space = `${sizeText(free)} free`
  if (free < floorBytes) {
    return failure(
      'disk',
      `${space}, below the minimum of ${sizeText(floorBytes)}: ingest is refused.`,
      'free disk space or shorten retention',
    )
  }
  // With few events the fixed size of the database would distort the forecast.
  if (checkup === null || checkup.eventsLastWeek === 0 || checkup.facts.events < forecastEventsMin) {
    return ok('disk', `${space}.`)
  }
  const bytesPerDay = ((checkup.bytes / checkup.facts.events) * checkup.eventsLastWeek) / 7
  const days = Math.floor((free - floorBytes) / bytesPerDay)
  const pace = `at the rate of the last 7 days (${sizeText(bytesPerDay)} per day)`
  const then = days > farDays ? 'in more than 10 years' : `in ${days} days`
  const forecast = `${space}; ${pace} the disk is full ${then}.`
  return days < soonDays
    ? warning('disk', forecast, 'add disk space or shorten retention')
    : ok('disk', forecast)
}

/** Data that a restore moved aside uses disk space until somebody deletes it. */
export function checkAside(dataDir: string): Check | null {
  const [newest, ...older] = asideFolders(dataDir)
  if (newest === undefined) return null
  const all = [newest, ...older]
  const names = all.length === 1 ? newest : `${newest} and ${older.length} more`
  return warning(
    'replaced-data',
    `A restore moved the previous data aside: ${names}.`,
    'delete it when you no longer need it; until then "sightglass restore --undo" brings it back',
  )
}

const openFilesMin = 1_024

/** Each connection is an open file. */
export function checkLimits(): Check | null {
  if (!existsSync('/proc/self/limits')) return null
  const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  if (soft === undefined) return null
  return Number(soft) < openFilesMin
    ? warning(
        'limits',
        `The limit of open files is ${soft}.`,
        'raise LimitNOFILE in the unit, or ulimit -n, to at least 1024',
      )
    : ok('limits', `Limit of open files: ${soft}.`)
}
