/**
 * Tools and site memory: their records for the store, their views in responses, and the differences between versions.
 * Views are JSON text in which the descriptor or snapshot is exactly as it was sent.
 */
import { isoTime } from '../../clock.ts'
import { limits } from '../../limits.ts'
import { canonicalText } from '../../text/json-scan.ts'
import { digestInSteps, textInSteps } from '../../text/json-values.ts'
import type { Steps } from '../../text/json-steps.ts'
import { invalidPush } from './push.ts'
import type {
  MemoryPush,
  MemoryVersion,
  StoredMemory,
  StoredTool,
  ToolRecord,
  ToolVersion,
} from '../../../db/contract/registry.ts'

interface Fields {
  [name: string]: unknown
}

/** `tools` are validated; `texts` are theirs where numbers are spelled otherwise. The last of equal names wins. */
export function* toolRecords(tools: readonly unknown[], texts?: readonly string[]): Steps<ToolRecord[]> {
  const records = new Map<string, ToolRecord>()
  for (const [index, tool] of tools.entries()) {
    const { name } = tool as { name: string }
    const json = texts?.[index] ?? (yield* textInSteps(tool))
    if (Buffer.byteLength(json) > limits.toolBytesMax) {
      const message = `must have at most ${limits.toolBytesMax} bytes`
      throw invalidPush([{ path: `tools.${index}`, code: 'too_large', message, index }])
    }
    records.set(name, { name, digest: yield* digestInSteps(tool), json })
  }
  return [...records.values()]
}

/** The fields of a tool beside its descriptor, which is sent as JSON text. */
function toolFacts({ siteId, name, version, firstAtMs, changedAtMs, removedAtMs }: StoredTool, tool: Fields) {
  const { tokens, estimated } = tokenCost(tool)
  return {
    siteId,
    name,
    enabled: tool['enabled'] !== false,
    tokens,
    tokensEstimated: estimated,
    version,
    firstSeenAt: isoTime(firstAtMs),
    changedAt: isoTime(changedAtMs),
    removedAt: removedAtMs === null ? null : isoTime(removedAtMs),
  }
}

export type ToolFacts = ReturnType<typeof toolFacts>

export function toolView(stored: StoredTool): string {
  const facts = toolFacts(stored, JSON.parse(stored.json) as Fields)
  return withField(facts, 'tool', stored.json)
}

/** `versions` may contain one more than is shown, so that the last one shown can be compared too. */
export function toolHistory({ tool, versions }: { tool: StoredTool; versions: ToolVersion[] }): string {
  const shown = versions.slice(0, limits.versionsShownMax).map(({ version, atMs, change, json }, index) => {
    const previousVersion = versions[index + 1]
    const changed =
      previousVersion === undefined ? [] : differences(JSON.parse(previousVersion.json), JSON.parse(json))
    return withField({ version, at: isoTime(atMs), change, differences: changed }, 'tool', json)
  })
  return `{"tool":${toolView(tool)},"versions":[${shown.join(',')}]}`
}

/** The JSON of `facts` with one more field whose value is already JSON text. */
function withField(facts: Fields, name: string, json: string): string {
  return `${JSON.stringify(facts).slice(0, -1)},${JSON.stringify(name)}:${json}}`
}

/** The tokens a model spends on a tool's descriptor: as the site declares, or estimated (contract §5). */
function tokenCost(tool: Fields): { tokens: number; estimated: boolean } {
  const { tokens, name, description, inputSchema, outputSchema } = tool
  if (typeof tokens === 'number') return { tokens, estimated: false }
  const chars = JSON.stringify({ name, description, inputSchema, outputSchema }).length
  return { tokens: Math.ceil(chars / 4), estimated: true }
}

/** `text` is the snapshot's where numbers are spelled otherwise; a missing score is computed. */
export function* memoryRecord(
  snapshot: Fields,
  sentScore: number | null,
  text?: string,
): Steps<Pick<MemoryPush, 'digest' | 'json' | 'score' | 'computed'>> {
  const score = sentScore ?? computedScore(snapshot)
  const json = text ?? (yield* textInSteps(snapshot))
  return { digest: yield* digestInSteps([snapshot, score]), json, score, computed: sentScore === null }
}

/** The share of its six parts that are filled in (contract §5), 0 to 100, rounded. */
export function computedScore(snapshot: Fields): number {
  const { siteMap, workflows, policies, uiGuidance, pageContexts } = snapshot
  const map = typeof siteMap === 'object' && siteMap !== null ? (siteMap as Fields) : {}
  const parts = [map['pages'], map['navigation'], workflows, policies, uiGuidance, pageContexts]
  return Math.round((100 * parts.filter(isFilled).length) / parts.length)
}

function isFilled(part: unknown): boolean {
  if (typeof part === 'string') return part.trim() !== ''
  if (typeof part === 'object' && part !== null) return hasField(part)
  return typeof part === 'number' || part === true
}

function hasField(part: object): boolean {
  for (const _ in part) return true
  return false
}

/** JSON text; the snapshot in it is exactly as it was sent. */
export function memoryView(memory: StoredMemory): string {
  const { siteId, firstAtMs, json } = memory
  return withField({ siteId, firstSeenAt: isoTime(firstAtMs), ...versionView(memory) }, 'snapshot', json)
}

export function versionView({ version, atMs, score, computed, bytes }: MemoryVersion) {
  return { version, at: isoTime(atMs), score, scoreComputed: computed, bytes }
}

export type MemoryVersionView = ReturnType<typeof versionView>

/** One difference between two JSON values, for people who compare versions. */
export interface Difference {
  path: string // JSON Pointer
  change: 'added' | 'removed' | 'changed'
  before?: unknown
  after?: unknown
}

/** The differences field by field, sorted by name; values too long to show are omitted. */
export function differences(oldValue: unknown, newValue: unknown): Difference[] {
  const results: Difference[] = []
  compare(oldValue, newValue, '', results)
  return results
}

function compare(oldValue: unknown, newValue: unknown, path: string, results: Difference[]): void {
  if (results.length >= limits.differencesMax || canonicalText(oldValue) === canonicalText(newValue)) return
  const old = fieldsOf(oldValue)
  const now = fieldsOf(newValue)
  if (old === null || now === null || Array.isArray(oldValue) !== Array.isArray(newValue)) {
    results.push({ path, change: 'changed', ...shown('before', oldValue), ...shown('after', newValue) })
    return
  }
  const names = [...new Set([...old.keys(), ...now.keys()])]
  for (const name of Array.isArray(oldValue) ? names : names.sort()) {
    if (results.length >= limits.differencesMax) return
    const inner = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (!now.has(name)) results.push({ path: inner, change: 'removed', ...shown('before', old.get(name)) })
    else if (!old.has(name)) results.push({ path: inner, change: 'added', ...shown('after', now.get(name)) })
    else compare(old.get(name), now.get(name), inner, results)
  }
}

function fieldsOf(value: unknown): Map<string, unknown> | null {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)) : null
}

function shown(side: 'before' | 'after', value: unknown): { before?: unknown; after?: unknown } {
  return JSON.stringify(value).length > limits.differenceCharsMax ? {} : { [side]: value }
}
