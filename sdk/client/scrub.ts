/** Takes secrets out of an event before it leaves the process. What holds none is passed on without a copy. */

const scrubbed = '[scrubbed]'
const depthMax = 32 // the appliance takes no deeper event
const membersMax = 50_000 // more do not fit into the 64 KiB of an event
const rememberedNamesMax = 5_000

/** One of these words in a member's name makes it a secret: `accessToken`, `set-cookie`, `DB_PASSWORD`. */
const secretWords = new Set([
  ...[
    'password',
    'passwords',
    'passwd',
    'passphrase',
    'token',
    'authorization',
    'cookie',
    'cookies',
    'secret',
  ],
])

type Members = { [name: string]: unknown }
export type Scrub = <T>(value: T) => T

/**
 * Makes the function for the built-in names and `paths` of one's own. A path is a member's name or several joined by
 * dots; it holds at any depth, through lists, so `card.number` is found wherever a `card` has a `number`.
 * The function throws with a sentence on circles and on what is too deep or too large to be an event.
 */
export function createScrub(paths: string[] = []): Scrub {
  const trails = paths.map((path) => path.split('.'))
  const verdicts = new Map<string, boolean>()
  return <T>(value: T): T => walk(value, 1, { verdicts, trails, trail: [], members: 0 }) as T
}

interface Walk {
  verdicts: Map<string, boolean> // names repeat from event to event, so what was found out about each is kept
  trails: string[][]
  trail: string[] // names from the root to the member looked at; kept only when there are own paths
  members: number
}

/** Runs for every event of the host: a microsecond here is a fifth of what a trace may cost. */
function walk(value: unknown, depth: number, state: Walk): unknown {
  if (typeof value !== 'object' || value === null) return value
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return walk(toJSON.call(value), depth + 1, state) // look at what will be written
  if (depth > depthMax)
    throw new Error(`the event contains itself, or is nested deeper than ${depthMax} levels`)
  return Array.isArray(value) ? walkItems(value, depth, state) : walkMembers(value as Members, depth, state)
}

function walkItems(items: unknown[], depth: number, state: Walk): unknown[] {
  let copy: unknown[] | null = null
  count(state, items.length)
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    if (typeof item !== 'object') continue
    const kept = walk(item, depth + 1, state)
    if (kept !== item) (copy ??= items.slice())[index] = kept
  }
  return copy ?? items
}

function walkMembers(members: Members, depth: number, state: Walk): Members {
  let copy: Members | null = null
  let seen = 0
  const hasTrails = state.trails.length > 0
  // Unlike Object.keys this makes no list. It finds inherited members too, which are not written: that does no harm.
  for (const name in members) {
    const member = members[name]
    seen++
    if (member === null || member === undefined || typeof member === 'boolean') continue
    if (hasTrails) state.trail.push(name)
    let kept: unknown = member
    if (hides(name, member, state)) kept = scrubbed
    else if (typeof member === 'object') kept = walk(member, depth + 1, state)
    if (hasTrails) state.trail.pop()
    if (kept !== member) (copy ??= { ...members })[name] = kept
  }
  count(state, seen)
  return copy ?? members
}

/** A number is a secret only under the bare word: `tokenCount: 5` tells something, `password: 1234` too much. */
function hides(name: string, member: unknown, state: Walk): boolean {
  if (isSecret(name, state.verdicts) && (typeof member !== 'number' || secretWords.has(name.toLowerCase())))
    return true
  return state.trails.length > 0 && state.trails.some((trail) => endsWith(state.trail, trail))
}

function endsWith(trail: string[], end: string[]): boolean {
  const start = trail.length - end.length
  return start >= 0 && end.every((name, index) => trail[start + index] === name)
}

function count(state: Walk, more: number): void {
  state.members += more
  if (state.members > membersMax) throw new Error(`the event has more than ${membersMax} members`)
}

function isSecret(name: string, verdicts: Map<string, boolean>): boolean {
  const known = verdicts.get(name)
  if (known !== undefined) return known
  if (verdicts.size >= rememberedNamesMax) verdicts.clear()
  const verdict = wordsOf(name).some((word) => secretWords.has(word))
  verdicts.set(name, verdict)
  return verdict
}

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase())
}
