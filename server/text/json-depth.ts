/** Tells whether a parsed JSON value nests deeper than a limit, without walking further than the limit. */

/** A text, number, boolean or null has depth 0, `{}` and `[]` have depth 1. */
export function isDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depthMax <= 0) return true
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i]
      if (typeof item === 'object' && item !== null && isDeeperThan(item, depthMax - 1)) return true
    }
    return false
  }
  // for-in sees exactly the members that JSON.parse made, `__proto__` included: they are all own and enumerable.
  for (const name in value) {
    const item = (value as { [member: string]: unknown })[name]
    if (typeof item === 'object' && item !== null && isDeeperThan(item, depthMax - 1)) return true
  }
  return false
}
