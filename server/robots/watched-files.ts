/** Follows robots.txt files of `serve --robots`: new content is a new version, in force since the file was written. */
import { open, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { robotsBytesMax } from '../../db/rules/robots.ts'
import type { Store } from '../../db/contract/store.ts'
import { UsageError } from '../errors.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'
import type { Clock } from '../clock.ts'
import { robotsText, setRobots } from './robots.ts'

export interface RobotsSource {
  siteId: string
  path: string // absolute
}

const sourcesMax = 100

/** `shop=/var/www/robots.txt,blog=…`. */
export function robotsSources(text: string): RobotsSource[] {
  const sources = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const at = part.indexOf('=')
      const [siteId, path] = [part.slice(0, Math.max(0, at)), part.slice(at + 1)]
      if (at < 1 || path === '' || [...siteId].length > limits.idCharsMax)
        throw new UsageError(`"${part}" is not SITE_ID=FILE, such as shop=/var/www/robots.txt`)
      return { siteId, path: resolve(path) }
    })
  const twice = sources.find((each, index) =>
    sources.slice(0, index).some(({ siteId }) => siteId === each.siteId),
  )
  if (twice !== undefined) throw new UsageError(`the site ${twice.siteId} has two files`)
  if (sources.length > sourcesMax) throw new UsageError(`at most ${sourcesMax} files can be watched`)
  return sources
}

export interface RobotsFiles {
  /** Reads the files that changed. Problems are logged once, and tried again. */
  check(): Promise<void>
}

interface Services {
  store: Pick<Store, 'robots' | 'orgs'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

/** The files belong to the organization `default`, or to the first one. Null without files. */
export function watchRobots(services: Services, sources: readonly RobotsSource[]): RobotsFiles | null {
  if (sources.length === 0) return null
  const { store, log } = services
  const seen = new Map<string, string>() // path -> what the file was when it was read
  const problems = new Map<string, string>()

  async function check({ siteId, path }: RobotsSource): Promise<void> {
    const { mtimeMs, size, ino } = await stat(path)
    const state = `${mtimeMs} ${size} ${ino}`
    if (seen.get(path) === state) return
    const text = robotsText(await firstBytes(path), path)
    const org = (await store.orgs.find('default')) ?? (await store.orgs.list())[0]
    if (!org) return
    const fromMs = await inForceFrom(services, { orgId: org.id, siteId }, Math.floor(mtimeMs))
    const who = { orgId: org.id, actor: 'system' }
    const result = await setRobots(services, who, { siteId, text, fromMs, source: path })
    if (result.state === 'stored') log.info('robots_version', { siteId, path, version: result.version })
    seen.set(path, state)
    problems.delete(path)
  }

  return {
    async check() {
      for (const source of sources) {
        try {
          await check(source)
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error)
          if (problems.get(source.path) === message) continue
          problems.set(source.path, message)
          log.warn('robots_file', { ...source, message })
        }
      }
    },
  }
}

/** The time of the file, unless a later version is known or the time lies in the future. */
async function inForceFrom(
  { store, clock }: Services,
  of: { orgId: string; siteId: string },
  writtenMs: number,
): Promise<number> {
  const [newest] = await store.robots.list(of)
  const isPlausible = writtenMs <= clock.now() && writtenMs > (newest?.fromMs ?? 0)
  return isPlausible ? writtenMs : clock.now()
}

/** One byte more than may be stored, so that a longer file is refused and never read whole. */
async function firstBytes(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r')
  try {
    const buffer = Buffer.alloc(robotsBytesMax + 1)
    let length = 0
    for (let read = 1; read > 0 && length < buffer.length; length += read)
      read = (await file.read(buffer, length, buffer.length - length)).bytesRead
    return buffer.subarray(0, length)
  } finally {
    await file.close()
  }
}
