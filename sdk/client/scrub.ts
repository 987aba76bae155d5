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
 * dots; it holds at any depth, through arrays, so `card.number` is found wherever a `card` has a `number`.
 * The function throws with a sentence on circles and on what is too deep or too large to be an event.
 */
export function createScrub(paths: string[] = []): Scrub {
  const trails = paths.map((path) => path.split('.'))
  const isSecret = rememberedNames()
  return <T>(value: T): T => walk(value, { trails, isSecret, trail: [], above: [], members: 0 }) as T
}

interface Walk {
  trails: string[][]
  isSecret: (name: string) => boolean
  trail: string[] // names from the root to the member looked at; kept only when there are own paths
  above: object[]
  members: number
}

function walk(value: unknown, state: Walk): unknown {
  if (typeof value !== 'object' || value === null) return value
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return walk(toJSON.call(value), state) // look at what will be written
  if (state.above.includes(value)) throw new Error('the event contains itself')
  if (state.above.length === depthMax) throw new Error(`the event is nested deeper than ${depthMax} levels`)
  state.above.push(value)
  const result = Array.isArray(value) ? walkItems(value, state) : walkMembers(value as Members, state)
  state.above.pop()
  return result
}

function walkItems(items: unknown[], state: Walk): unknown[] {
  let copy: unknown[] | null = null
  count(state, items.length)
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    const kept = walk(item, state)
    if (kept !== item) (copy ??= items.slice())[index] = kept
  }
  return copy ?? items
}

function walkMembers(members: Members, state: Walk): Members {
  let copy: Members | null = null
  const names = Object.keys(members)
  count(state, names.length)
  for (const name of names) {
    const member = members[name]
    if (member === null || member === undefined || typeof member === 'boolean') continue
    if (state.trails.length > 0) state.trail.push(name)
    const kept = hides(name, member, state)
      ? scrubbed
      : typeof member === 'object'
        ? walk(member, state)
        : member
    if (state.trails.length > 0) state.trail.pop()
    if (kept !== member) (copy ??= { ...members })[name] = kept
  }
  return copy ?? members
}

/** A number is a secret only under the bare word: `tokenCount: 5` tells something, `password: 1234` too much. */
function hides(name: string, member: unknown, state: Walk): boolean {
  if (state.isSecret(name) && (typeof member !== 'number' || secretWords.has(name.toLowerCase()))) return true
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

/** Names repeat from event to event, so the verdict on each is worth keeping. */
function rememberedNames(): (name: string) => boolean {
  const verdicts = new Map<string, boolean>()
  return (name) => {
    const known = verdicts.get(name)
    if (known !== undefined) return known
    if (verdicts.size >= rememberedNamesMax) verdicts.clear()
    const verdict = wordsOf(name).some((word) => secretWords.has(word))
    verdicts.set(name, verdict)
    return verdict
  }
}

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase())
}
