/** Judges requests by the version of the site's robots.txt that was in force at their time. */
import { parseRobots, robotsJudge, type JudgeRobots } from '../../db/rules/robots.ts'
import { robotsTokens } from '../../db/rules/robots-families.ts'
import type { Store } from '../../db/contract/store.ts'
import { elapsedMs, isoTime, type Clock } from '../clock.ts'

/** What an event says about a request: fields of its `agent`. */
export interface RobotsMark {
  robots: 'allowed' | 'disallowed'
  robotsRule: {
    version: number
    from: string // since when the version was in force
    line?: number // of the rule; missing when no rule matched
  }
}

/** Null when no version was in force, or when the request has no path. `target` may have a query. */
export type MarkRobots = (name: string, target: string | null, timeMs: number) => RobotsMark | null

interface RobotsText {
  version: number
  fromMs: number
  text: string
}

/** Requests arrive nearly in order of time, so few versions are needed at once. */
const parsedMax = 4
const marksMax = 10_000
/** Longer paths are judged by their start. */
const targetCharsMax = 8_192

export function markRobots(versions: readonly RobotsText[]): MarkRobots {
  const newestFirst = versions.toSorted((a, b) => b.fromMs - a.fromMs)
  const parsed = new Map<number, MarkOne>()
  return (name, target, timeMs) => {
    if (target === null || !target.startsWith('/')) return null
    const version = newestFirst.find(({ fromMs }) => fromMs <= timeMs)
    if (version === undefined) return null
    let mark = parsed.get(version.version)
    if (mark === undefined) {
      for (const oldest of parsed.keys()) if (parsed.size >= parsedMax) parsed.delete(oldest)
      parsed.set(version.version, (mark = markBy(version)))
    }
    return mark(name, target.slice(0, targetCharsMax))
  }
}

type MarkOne = (name: string, target: string) => RobotsMark

/** Logs repeat a few pages, so verdicts are cached. */
function markBy({ version, fromMs, text }: RobotsText): MarkOne {
  const judge: JudgeRobots = robotsJudge(parseRobots(text))
  const from = isoTime(fromMs)
  const marks = new Map<string, RobotsMark>()
  return (name, target) => {
    const key = `${name}\n${target}`
    const cachedMark = marks.get(key)
    if (cachedMark !== undefined) return cachedMark
    if (marks.size >= marksMax) marks.clear()
    const { allowed, line } = judge(robotsTokens(name), target)
    const rule = line === null ? { version, from } : { version, from, line }
    const mark: RobotsMark = { robots: allowed ? 'allowed' : 'disallowed', robotsRule: rule }
    marks.set(Buffer.from(key).toString(), mark) // a copy: a part of a block would hold all of it
    return mark
  }
}

/** The versions of a site from wherever they are. Null without any. */
export async function loadRobots(
  list: () => Promise<{ version: number; fromMs: number }[]>,
  textOf: (version: number) => Promise<string | null>,
): Promise<MarkRobots | null> {
  const versions: RobotsText[] = []
  for (const { version, fromMs } of await list()) {
    const text = await textOf(version)
    if (text !== null) versions.push({ version, fromMs, text })
  }
  return versions.length === 0 ? null : markRobots(versions)
}

/** The judges of sites whose logs arrive while the server runs. */
export interface RobotsReader {
  of(orgId: string, siteId: string): Promise<MarkRobots | null>
}

/** A version that was set on any node counts within this time. */
const restMs = 1_000
const sitesMax = 200

export function robotsReader(store: Pick<Store, 'robots'>, clock: Clock): RobotsReader {
  const markCache = new Map<string, { atMs: number; state: string; mark: MarkRobots | null }>()
  return {
    async of(orgId, siteId) {
      const key = JSON.stringify([orgId, siteId])
      const entry = markCache.get(key)
      const atMs = elapsedMs(clock)
      if (entry !== undefined && atMs - entry.atMs < restMs) return entry.mark
      const versions = await store.robots.list({ orgId, siteId })
      const state = JSON.stringify(versions.map(({ version, fromMs }) => [version, fromMs]))
      const textOf = async (version: number) =>
        (await store.robots.find({ orgId, siteId, version }))?.text ?? null
      const mark = entry?.state === state ? entry.mark : await loadRobots(async () => versions, textOf)
      markCache.delete(key)
      markCache.set(key, { atMs, state, mark })
      if (markCache.size > sitesMax) markCache.delete(markCache.keys().next().value!)
      return mark
    },
  }
}
