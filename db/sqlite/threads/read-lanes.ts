/** Sorts the questions to the readers into lanes. Those of one lane wait for each other; lanes take turns. */

export interface Lane {
  name: string
  /** Runs long: only one of the lane at a time, on one reader, so that a processor is left for others. */
  isLong: boolean
  /** Asked by nobody who waits: it may take as long as it needs. */
  isBackground: boolean
}

const longVerbs = new Set([
  'sessions.page',
  'sessions.story',
  'events.count',
  'events.tally',
  'events.histogram',
  'events.top',
  'events.newValues',
  'events.trustReached',
  'audit.list',
])
const backgroundVerbs = new Set([
  ...['events.recount', 'events.verify', 'audit.verify', 'retention.eventBytes', 'retention.cutoff'],
])

/** A larger page belongs to an export, which walks through all events. */
const shortPageMax = 200

export function laneOf(verb: string, command: unknown): Lane {
  const {
    orgId,
    limit = 0,
    filter,
  } = (typeof command === 'object' && command !== null ? command : {}) as {
    orgId?: unknown
    limit?: number
    filter?: { text?: string }
  }
  const name = String(orgId ?? (typeof command === 'string' ? command : verb))
  if (backgroundVerbs.has(verb)) return { name: `${name} background`, isLong: true, isBackground: true }
  const isWalk = verb === 'events.page' && (limit > shortPageMax || filter?.text !== undefined)
  const isLong = isWalk || longVerbs.has(verb)
  return { name: isLong ? `${name} long` : name, isLong, isBackground: false }
}
