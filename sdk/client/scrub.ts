/** Removes secrets from an event before it leaves the process. Values without secrets are not copied. */

const scrubbed = '[scrubbed]'
const depthMax = 32 // the appliance rejects deeper events
const fieldsMax = 50_000 // more do not fit into the 64 KiB of an event
const cachedNamesMax = 5_000

/** A field is secret when its name contains one of these words: `accessToken`, `set-cookie`, `DB_PASSWORD`. */
const secretWords = new Set([
  'password',
  'passwords',
  'passwd',
  'passphrase',
  'token',
  'authorization',
  'cookie',
  'cookies',
  'secret',
])

type Fields = { [name: string]: unknown }
export type Scrub = <T>(value: T) => T

/**
 * Returns a function that scrubs the built-in names and `paths`. A path is one field name, or several joined by dots,
 * and matches at any depth and through arrays: `card.number` matches wherever a `card` has a `number`.
 * The function throws on cycles and on values that are too deep or too large for an event.
 */
export function createScrub(paths: string[] = []): Scrub {
  const trails = paths.map((path) => path.split('.'))
  const secretNames = new Map<string, boolean>()
  return <T>(value: T): T => walk(value, 1, { secretNames, trails, trail: [], fields: 0 }) as T
}

interface Walk {
  secretNames: Map<string, boolean> // cache: names repeat from event to event
  trails: string[][]
  trail: string[] // names from the root to the current field; maintained only with custom paths
  fields: number
}

/** Runs for every event: 1 µs here is a fifth of the time budget of a trace. */
function walk(value: unknown, depth: number, state: Walk): unknown {
  if (typeof value !== 'object' || value === null) return value
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return walk(toJSON.call(value), depth + 1, state) // check the value that JSON will contain
  if (depth > depthMax) throw new Error(`the event is cyclic or nested deeper than ${depthMax} levels`)
  return Array.isArray(value) ? walkItems(value, depth, state) : walkFields(value as Fields, depth, state)
}

function walkItems(items: unknown[], depth: number, state: Walk): unknown[] {
  let copy: unknown[] | null = null
  count(state, items.length)
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    if (typeof item !== 'object') continue
    const clean = walk(item, depth + 1, state)
    if (clean !== item) (copy ??= items.slice())[index] = clean
  }
  return copy ?? items
}

function walkFields(fields: Fields, depth: number, state: Walk): Fields {
  let copy: Fields | null = null
  let fieldCount = 0
  const hasTrails = state.trails.length > 0
  // Unlike Object.keys, this allocates nothing. It also visits inherited fields, which is harmless.
  for (const name in fields) {
    const field = fields[name]
    fieldCount++
    if (field === null || field === undefined || typeof field === 'boolean') continue
    if (hasTrails) state.trail.push(name)
    let clean: unknown = field
    if (isHidden(name, field, state)) clean = scrubbed
    else if (typeof field === 'object') clean = walk(field, depth + 1, state)
    if (hasTrails) state.trail.pop()
    if (clean !== field) (copy ??= { ...fields })[name] = clean
  }
  count(state, fieldCount)
  return copy ?? fields
}

/** A number is secret only under the exact word: `password: 1234` is scrubbed, `tokenCount: 5` is not. */
function isHidden(name: string, field: unknown, state: Walk): boolean {
  if (isSecret(name, state.secretNames) && (typeof field !== 'number' || secretWords.has(name.toLowerCase())))
    return true
  return state.trails.length > 0 && state.trails.some((trail) => endsWith(state.trail, trail))
}

function endsWith(trail: string[], end: string[]): boolean {
  const start = trail.length - end.length
  return start >= 0 && end.every((name, index) => trail[start + index] === name)
}

function count(state: Walk, fieldCount: number): void {
  state.fields += fieldCount
  if (state.fields > fieldsMax) throw new Error(`the event has more than ${fieldsMax} fields`)
}

function isSecret(name: string, secretNames: Map<string, boolean>): boolean {
  const cachedResult = secretNames.get(name)
  if (cachedResult !== undefined) return cachedResult
  if (secretNames.size >= cachedNamesMax) secretNames.clear()
  const result = wordsOf(name).some((word) => secretWords.has(word))
  secretNames.set(name, result)
  return result
}

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase())
}
