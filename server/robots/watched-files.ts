/** Follows robots.txt files of `serve --robots`: new content is a new version, in force since the file was written. */
import { resolve } from 'node:path'
import { firstBytes } from '../../db/rules/regular-files.ts'
import { robotsBytesMax } from '../../db/rules/robots.ts'
import type { Store } from '../../db/contract/store.ts'
import { AppError, UsageError } from '../errors.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'
import { optionTables } from '../text/option-tables.ts'
import type { Clock } from '../clock.ts'
import { withinTime } from '../system/slow-files.ts'
import { watchedPath, type ProtectedFiles, type WatchedPath } from '../system/watched-path.ts'
import { robotsText, setRobots } from './robots.ts'

export interface RobotsSource {
  org: string | null // slug or id; null: `default`, or the first one
  siteId: string
  path: string // absolute
}

const sourcesMax = 100

/** `shop=/var/www/robots.txt,blog=…` of the flag, or the tables of the file as JSON. */
export function robotsSources(text: string): RobotsSource[] {
  const tables = optionTables(text, 'robots', ['site', 'path', 'org'])
  const sources =
    tables?.map((table) => sourceOf(table.text('org', defaultOrg), table.text('site'), table.text('path'))) ??
    pairsOf(text)
  const nameOf = ({ org, siteId }: RobotsSource) => JSON.stringify([org, siteId])
  const twice = sources.find((source, index) =>
    sources.slice(0, index).some((earlierSource) => nameOf(earlierSource) === nameOf(source)),
  )
  if (twice !== undefined) throw new UsageError(`the site ${twice.siteId} has two files`)
  if (sources.length > sourcesMax) throw new UsageError(`at most ${sourcesMax} files can be watched`)
  return sources
}

const defaultOrg = 'default'

function pairsOf(text: string): RobotsSource[] {
  const parts = text.split(',').map((part) => part.trim())
  return parts
    .filter((part) => part !== '')
    .map((part) => {
      const equalsIndex = part.indexOf('=')
      if (equalsIndex < 1 || equalsIndex === part.length - 1)
        throw new UsageError(`"${part}" is not SITE_ID=FILE, such as shop=/var/www/robots.txt`)
      return sourceOf(null, part.slice(0, equalsIndex), part.slice(equalsIndex + 1))
    })
}

function sourceOf(org: string | null, siteId: string, path: string): RobotsSource {
  if ([...siteId].length > limits.idCharsMax)
    throw new UsageError(`a site has at most ${limits.idCharsMax} characters`)
  return { org, siteId, path: resolve(path) }
}

export interface RobotsFiles {
  /** Reads the files that changed. Problems are logged once, and tried again. */
  check(ending?: AbortSignal): Promise<void>
}

interface Services {
  store: Pick<Store, 'robots' | 'orgs'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  protectedFiles?: ProtectedFiles
}

/** Null without files. */
export function watchRobots(services: Services, sources: readonly RobotsSource[]): RobotsFiles | null {
  if (sources.length === 0) return null
  const { store, log, protectedFiles = { dataDir: null, keyFiles: [] } } = services
  const watched = new Map(sources.map((source) => [source, watchedPath(source.path, protectedFiles)]))
  const lastStates = new Map<RobotsSource, string>() // what the file was when it was read
  const problems = new Map<RobotsSource, string>()

  async function check(source: RobotsSource): Promise<void> {
    const { siteId, path } = source
    const { state, mtimeMs, bytes } = await readChanged(path, watched.get(source)!, lastStates.get(source))
    if (bytes === null) return
    const text = robotsText(bytes, path)
    const org = await orgOf(source)
    if (!org) return
    const fromMs = await inForceFrom(services, { orgId: org.id, siteId }, Math.floor(mtimeMs))
    const actor = { orgId: org.id, actor: 'system' }
    const result = await setRobots(services, actor, { siteId, text, fromMs, source: path })
    if (result.state === 'stored') log.info('robots_version', { siteId, path, version: result.version })
    lastStates.set(source, state)
    problems.delete(source)
  }

  async function orgOf({ org }: RobotsSource) {
    const organization = await store.orgs.find(org ?? defaultOrg)
    if (organization === null && org !== null)
      throw new AppError('not_found', `There is no organization "${org}".`)
    return organization ?? (await store.orgs.list())[0]
  }

  return {
    async check(ending) {
      for (const source of sources) {
        if (ending?.aborted === true) return
        try {
          await check(source)
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error)
          if (problems.get(source) === message) continue
          problems.set(source, message)
          log.warn('robots_file', { ...source, message })
        }
      }
    },
  }
}

/** The time of the file, unless a later version is known or the time lies in the future. */
async function inForceFrom(
  { store, clock }: Services,
  siteKey: { orgId: string; siteId: string },
  writtenMs: number,
): Promise<number> {
  const [newest] = await store.robots.list(siteKey)
  const isPlausible = writtenMs <= clock.now() && writtenMs > (newest?.fromMs ?? 0)
  return isPlausible ? writtenMs : clock.now()
}

/**
 * The content, unless the file is as it was when it was read. One byte more than may be stored, so that a longer file
 * is refused and never read whole.
 */
async function readChanged(
  path: string,
  watched: WatchedPath,
  lastState: string | undefined,
): Promise<{ state: string; mtimeMs: number; bytes: Uint8Array | null }> {
  const file = await watched.open(path)
  try {
    return await withinTime({ path }, async () => {
      const { mtimeMs, size, ino } = await file.stat()
      const state = `${mtimeMs} ${size} ${ino}`
      return {
        state,
        mtimeMs,
        bytes: state === lastState ? null : await firstBytes(file, robotsBytesMax + 1),
      }
    })
  } finally {
    await withinTime({ path }, () => file.close()).catch(() => undefined)
  }
}
