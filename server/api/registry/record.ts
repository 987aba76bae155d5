/** A stored tool and its versions in responses: JSON text with the descriptor exactly as it was sent. */
import { isoTime } from '../../clock.ts'
import { limits } from '../../limits.ts'
import { differences } from './differences.ts'
import type { StoredTool, ToolVersion } from '../../../db/contract/registry.ts'

interface Descriptor {
  [member: string]: unknown
}

/** The fields of a tool beside its descriptor, which is sent as JSON text. */
function toolFacts(
  { siteId, name, version, firstAtMs, changedAtMs, removedAtMs }: StoredTool,
  tool: Descriptor,
) {
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
  const facts = toolFacts(stored, JSON.parse(stored.json) as Descriptor)
  return withMember(facts, 'tool', stored.json)
}

/** `versions` may contain one more than is shown, so that the last one shown can be compared too. */
export function toolHistory({ tool, versions }: { tool: StoredTool; versions: ToolVersion[] }): string {
  const shown = versions.slice(0, limits.versionsShownMax).map(({ version, atMs, change, json }, at) => {
    const before = versions[at + 1]
    const changed = before === undefined ? [] : differences(JSON.parse(before.json), JSON.parse(json))
    return withMember({ version, at: isoTime(atMs), change, differences: changed }, 'tool', json)
  })
  return `{"tool":${toolView(tool)},"versions":[${shown.join(',')}]}`
}

/** The JSON of `facts` with one more field whose value is already JSON text. */
export function withMember(facts: { [member: string]: unknown }, name: string, json: string): string {
  return `${JSON.stringify(facts).slice(0, -1)},${JSON.stringify(name)}:${json}}`
}

/** The tokens a model spends on a tool's descriptor: as the site declares, or estimated (contract §5). */
interface TokenCost {
  tokens: number
  estimated: boolean
}

function tokenCost(tool: { [member: string]: unknown }): TokenCost {
  const { tokens, name, description, inputSchema, outputSchema } = tool
  if (typeof tokens === 'number') return { tokens, estimated: false }
  const chars = JSON.stringify({ name, description, inputSchema, outputSchema }).length
  return { tokens: Math.ceil(chars / 4), estimated: true }
}
