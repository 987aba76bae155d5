/** The score of a snapshot that came without one: the share of its six parts that are filled in (contract §5). */

interface Members {
  [member: string]: unknown
}

/** 0 to 100, rounded. */
export function computedScore(snapshot: Members): number {
  const { siteMap, workflows, policies, uiGuidance, pageContexts } = snapshot
  const map = typeof siteMap === 'object' && siteMap !== null ? (siteMap as Members) : {}
  const parts = [map['pages'], map['navigation'], workflows, policies, uiGuidance, pageContexts]
  return Math.round((100 * parts.filter(isFilled).length) / parts.length)
}

function isFilled(part: unknown): boolean {
  if (typeof part === 'string') return part.trim() !== ''
  if (typeof part === 'object' && part !== null) return Object.keys(part).length > 0
  return typeof part === 'number' || part === true
}
