/** Agents under their vendors: the rows of Detect's table, from counts by vendor, name and purpose. */
import type { CountedName, DetectCounts } from '../../api/api.ts'

/** Detections of one name of a vendor, with the purposes that came with it; null: those without a name. */
export interface NamedAgent {
  name: string | null
  isOthers: boolean // names for which there is no room
  purposes: { purpose: string; count: number }[] // most first
  count: number
  before: number
  blocked: number
}

/** Stands for a vendor in the map: its name, or why it has none. */
export function vendorKey(vendor: CountedName): string {
  return typeof vendor === 'string' ? vendor : `name ${vendor.name}`
}

/** By `vendorKey`; names are the most frequent first, whatever the purposes were. */
export function agentsByVendor(agents: DetectCounts['agents']): Map<string, NamedAgent[]> {
  const vendors = new Map<string, Map<string, NamedAgent>>()
  for (const { vendor, name, purpose, count, before, blocked } of agents) {
    const names = vendors.get(vendorKey(vendor)) ?? new Map<string, NamedAgent>()
    vendors.set(vendorKey(vendor), names)
    const text = typeof name === 'string' ? null : name.name
    const key = vendorKey(name)
    const row = names.get(key) ?? {
      name: text,
      isOthers: name === 'other',
      purposes: [],
      count: 0,
      before: 0,
      blocked: 0,
    }
    names.set(key, row)
    row.count += count
    row.before += before
    row.blocked += blocked
    if (count === 0 || purpose === 'missing') continue
    row.purposes.push({ purpose: purpose === 'other' ? '(others)' : purpose.name, count })
  }
  return new Map(
    Array.from(vendors, ([vendor, names]) => {
      const rows = [...names.values()].sort((a, b) => b.count - a.count || b.before - a.before)
      for (const row of rows) row.purposes.sort((a, b) => b.count - a.count)
      return [vendor, rows]
    }),
  )
}

/** "training", or with counts when there are several: "training 12, user 3". */
export function purposeText(agents: readonly NamedAgent[], countText: (count: number) => string): string {
  const counts = new Map<string, number>()
  for (const { purpose, count } of agents.flatMap(({ purposes }) => purposes))
    counts.set(purpose, (counts.get(purpose) ?? 0) + count)
  const sorted = [...counts].sort(([, a], [, b]) => b - a)
  if (sorted.length === 1) return sorted[0]![0]
  return sorted.map(([purpose, count]) => `${purpose} ${countText(count)}`).join(', ')
}
