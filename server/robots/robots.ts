/** Versions of a site's robots.txt: setting one, listing, showing with what changed, and testing a new one. */
import { looksLikeRobots, parseRobots, robotsBytesMax, type RobotsNote } from '../../db/rules/robots.ts'
import type { RobotsVersion, RobotsTest } from '../../db/contract/robots.ts'
import type { Json, Store } from '../../db/contract/store.ts'
import { auditEntry, type Actor } from '../audit/entry.ts'
import { isoTime, type Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { wrongField } from '../http/validate.ts'
import { limits } from '../limits.ts'

export interface RobotsServices {
  store: Pick<Store, 'robots'>
  clock: Clock
}

interface NewRobots {
  siteId: string
  text: string
  fromMs: number | null // null: now
  source?: string // path of a watched file
}

/** Where a version comes from: the text of a file, read within the limit. */
export function robotsText(bytes: Uint8Array, label: string): string {
  if (bytes.length > robotsBytesMax)
    throw new AppError(
      'payload_too_large',
      `${label} has ${bytes.length} bytes; at most 500 KiB are accepted.`,
    )
  const text = new TextDecoder().decode(bytes)
  if (!looksLikeRobots(text))
    throw new AppError(
      'unsupported_media_type',
      `${label} does not look like a robots.txt: fewer than half of its lines are rules.`,
    )
  return text
}

/** Stores a version, unless the one in force at that time is the same text. */
export async function setRobots(
  { store, clock }: RobotsServices,
  actor: Actor,
  { siteId, text, fromMs, source }: NewRobots,
): Promise<SetView> {
  const now = clock.now()
  requireSiteId(siteId)
  requireText(text)
  const from = fromMs ?? now
  if (from > now)
    throw wrongField('from', 'A robots.txt cannot take effect in the future. Set it when it does.')
  const { rules, ignored, unmatched } = parseRobots(text)
  const digest = Bun.SHA256.hash(text, 'hex')
  const metadata: { [name: string]: Json } = {
    digest,
    rules,
    bytes: Buffer.byteLength(text),
    from: isoTime(from),
  }
  if (source !== undefined) metadata['file'] = source
  const result = await store.robots.set({
    orgId: actor.orgId,
    siteId,
    text,
    fromMs: from,
    now,
    setBy: actor.actor,
    sitesMax: limits.sitesPerOrgMax,
    versionsMax: limits.robotsVersionsMax,
    audit: auditEntry(actor, { action: 'site.robots_set', target: siteId, metadata }, now),
  })
  if (result.state === 'over')
    throw wrongField('siteId', `Only ${limits.sitesPerOrgMax} sites can have a robots.txt.`, 'too_many')
  const { state, version } = result
  return { siteId, state, version, from: isoTime(from), digest, rules, ignored, unmatched }
}

export interface SetView {
  siteId: string
  state: 'stored' | 'same'
  version: number
  from: string
  digest: string
  rules: number
  ignored: number // lines that no crawler reads
  unmatched: number // User-agent lines that name no crawler
}

function requireSiteId(siteId: string): void {
  if (siteId === '' || [...siteId].length > limits.idCharsMax)
    throw wrongField('siteId', `A site id must have 1 to ${limits.idCharsMax} characters.`)
}

function requireText(text: string): void {
  if (Buffer.byteLength(text) > robotsBytesMax)
    throw wrongField('text', 'A robots.txt must have at most 500 KiB.', 'too_long')
}

/** A version in a list: `until` null is in force. */
export interface RobotsView {
  siteId: string
  version: number
  from: string
  until: string | null
  setAt: string
  setBy: string
  setByName: string | null // of a person of the organization
  digest: string
  bytes: number
}

/** In force last first. */
export function robotsViews(
  versions: RobotsVersion[],
  nameOf: (actor: string) => string | null = () => null,
): RobotsView[] {
  return versions.map(({ fromMs, setAtMs, setBy, ...version }, index) => {
    const next = versions[index - 1]
    const until = next === undefined ? null : isoTime(next.fromMs)
    const times = { from: isoTime(fromMs), until, setAt: isoTime(setAtMs) }
    return { ...version, ...times, setBy, setByName: nameOf(setBy) }
  })
}

/** One version with its text, what its lines mean, and what changed since the version before it. */
export interface RobotsDetail {
  version: RobotsView
  text: string
  rules: number
  notes: RobotsNote[]
  ignored: number
  unmatched: number
  before: number | null // the version that was in force before
  changes: LineChanges | null
}

export async function robotsDetail(
  { store }: Pick<RobotsServices, 'store'>,
  orgId: string,
  siteId: string,
  version: number | null, // null: in force
  nameOf?: (actor: string) => string | null,
): Promise<RobotsDetail> {
  const versions = await store.robots.list({ orgId, siteId })
  const index = version === null ? 0 : versions.findIndex((candidate) => candidate.version === version)
  const requestedVersion = versions[index]
  const storedRobots =
    requestedVersion && (await store.robots.find({ orgId, siteId, version: requestedVersion.version }))
  if (!requestedVersion || !storedRobots) throw noRobots()
  const earlier = versions[index + 1]
  const previousRobots = earlier ? await store.robots.find({ orgId, siteId, version: earlier.version }) : null
  const { rules, notes, ignored, unmatched } = parseRobots(storedRobots.text)
  return {
    version: robotsViews(versions, nameOf)[index]!,
    text: storedRobots.text,
    rules,
    notes,
    ignored,
    unmatched,
    before: previousRobots?.version ?? null,
    changes: previousRobots === null ? null : lineChanges(previousRobots.text, storedRobots.text),
  }
}

export function noRobots(): AppError {
  return new AppError('not_found', 'This site has no such robots.txt.')
}

export interface RobotsTestView extends RobotsTest {
  siteId: string
  since: string
  rules: number
  ignored: number
  unmatched: number
  queryRules: number // rules with a query, which stored requests cannot match
}

const hourMs = 3_600_000
const testMs = 30 * 24 * hourMs
const agentsMax = 200
const pagesMax = 5

/** Judges the requests of the last 30 days by a text that is not in force. */
export async function testRobots(
  { store, clock }: RobotsServices,
  orgId: string,
  { siteId, text }: { siteId: string; text: string },
): Promise<RobotsTestView> {
  requireSiteId(siteId)
  requireText(text)
  const now = clock.now()
  const sinceMs = Math.floor(now / hourMs) * hourMs - testMs
  const range = { sinceMs, untilMs: now + 1, agentsMax, pagesMax, budgetMs: limits.robotsTestMsMax }
  const { groups, rules, ignored, unmatched } = parseRobots(text)
  const queryRules = groups.reduce(
    (sum, group) =>
      sum + group.rules.filter(({ pieces }) => pieces.some((piece) => piece.includes('?'))).length,
    0,
  )
  const result = await store.robots.test({ orgId, siteId, text, ...range })
  return { siteId, since: isoTime(sinceMs), rules, ignored, unmatched, queryRules, ...result }
}

interface LineChange {
  kind: 'added' | 'removed'
  line: number // in the new text when added, in the old one when removed
  text: string
}

interface LineChanges {
  added: number
  removed: number
  list: LineChange[] // in order of the texts; at most `shownMax`
}

const shownMax = 500
const textCharsMax = 500

/** Pairs of lines to compare: above it, whatever lies between the first and the last change counts as replaced. */
const pairsMax = 1_000_000

/** The fewest changes that turn one text into the other. Line breaks of any kind are equal. */
export function lineChanges(oldText: string, newText: string): LineChanges {
  const [old, now] = [oldText, newText].map((text) =>
    text.replace(/(?:\r\n|\r|\n)$/, '').split(/\r\n|\r|\n/),
  ) as [string[], string[]]
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const left = old.slice(start, old.length - end)
  const right = now.slice(start, now.length - end)
  const commonPairs = left.length * right.length > pairsMax ? [] : longestCommon(left, right)
  const changes: LineChanges = { added: 0, removed: 0, list: [] }
  const add = (kind: LineChange['kind'], line: number, text: string): void => {
    changes[kind]++
    if (changes.list.length < shownMax) changes.list.push({ kind, line, text: text.slice(0, textCharsMax) })
  }
  let at = 0
  let to = 0
  for (const [oldAt, newAt] of [...commonPairs, [left.length, right.length] as const]) {
    for (; at < oldAt; at++) add('removed', start + at + 1, left[at]!)
    for (; to < newAt; to++) add('added', start + to + 1, right[to]!)
    at++
    to++
  }
  return changes
}

/** Positions of a longest common subsequence, ascending. */
function longestCommon(left: string[], right: string[]): (readonly [number, number])[] {
  const width = right.length + 1
  const lengths = new Uint32Array((left.length + 1) * width)
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        left[i] === right[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
  const pairs: (readonly [number, number])[] = []
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) pairs.push([i++, j++])
    else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++
    else j++
  }
  return pairs
}
