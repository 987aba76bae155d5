/** The command palette's search: values of the organization's events, and the ranking of matches. */
import { api, get } from '../api/api.ts'
import { isoTime, now } from '../app/clock.ts'
import { navigate } from '../app/router.ts'
import { loadViews, savedViews } from '../api/saved-views.ts'
import { sessionApi } from '../api/session-api.ts'
import { registryApi } from '../api/registry-api.ts'

export interface Command {
  name: string
  kind: string // "Vendor"; '' for an action
  run: () => void
  events?: number // more events rank first among equal matches
}

/** Per character, because lowercasing a whole word changes a final capital sigma and a part of it would not match. */
const folded = (text: string): string => Array.from(text, (character) => character.toLowerCase()).join('')

/** 3: prefix of the name; 2: prefix of a word; 1: anywhere; 0: no match. */
export function rank(name: string, typed: string): number {
  const [text, part] = [folded(name), folded(typed.trim())]
  if (part === '') return 1
  const at = text.indexOf(part)
  if (at <= 0) return at === 0 ? 3 : 0
  const starts = new RegExp('[\\s.:/_-]' + part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return starts.test(text) ? 2 : 1
}

/** True if `name` contains the letters of `typed` in order. */
export function matches(name: string, typed: string): boolean {
  let from = 0
  const inName = folded(name)
  for (const letter of folded(typed).replaceAll(' ', '')) {
    from = inName.indexOf(letter, from) + 1
    if (from === 0) return false
  }
  return true
}

const perKind = 6

/** The best matches of each kind, by rank, then by number of events. */
export function bestOf(all: readonly Command[], typed: string): Command[] {
  const found = all
    .map((command) => ({ command, rank: rank(command.name, typed) }))
    .filter((one) => one.rank > 0)
    .sort((a, b) => b.rank - a.rank || (b.command.events ?? 0) - (a.command.events ?? 0))
  const shown = new Map<string, number>()
  return found.flatMap(({ command }) => {
    const before = shown.get(command.kind) ?? 0
    shown.set(command.kind, before + 1)
    return before < perKind ? [command] : []
  })
}

/** Event fields whose values are found by name, and the page that shows such a value. */
const fields: { by: string; kind: string; hrefOf: (value: string) => string }[] = [
  { by: 'vendor', kind: 'Vendor', hrefOf: (vendor) => `/detect?${new URLSearchParams({ vendor })}` },
  { by: 'name', kind: 'Agent', hrefOf: (name) => `/logs?${new URLSearchParams({ name })}` },
  { by: 'tool', kind: 'Tool', hrefOf: (tool) => `/logs?${new URLSearchParams({ tool })}` },
]

const dayMs = 86_400_000
const countedDays = 399 // counts are stored for 400 days
const sessionsMax = 100
const toolsMax = 1_000

async function valuesOf({ by, kind, hrefOf }: (typeof fields)[number]): Promise<Command[]> {
  const since = isoTime(Math.floor(now() / dayMs) * dayMs - countedDays * dayMs)
  const { rows } = await get<{ rows: { value: string | null; count: number }[] }>(
    `/api/breakdown?${new URLSearchParams({ by, since })}`,
  )
  const counts = new Map<string, number>()
  for (const { value, count } of rows)
    if (value !== null && value !== '') counts.set(value, (counts.get(value) ?? 0) + count)
  return Array.from(counts, ([value, events]) => ({
    ...{ name: value, kind, events, run: () => navigate(hrefOf(value)) },
  }))
}

/** A registered tool opens its own page; a tool that is only called opens its calls. */
async function registeredTools(signal: AbortSignal): Promise<Command[]> {
  const { list } = await registryApi.tools([], toolsMax, signal)
  return list.map(({ siteId: site, name: tool }) => ({
    ...{ name: tool, kind: 'Tool', events: Number.MAX_SAFE_INTEGER },
    run: () => navigate(`/tools?${new URLSearchParams({ site, tool })}`),
  }))
}

const sessionCommand = (id: string): Command => ({
  ...{ name: id, kind: 'Session', run: () => navigate(`/sessions?${new URLSearchParams({ session: id })}`) },
})

async function newestSessions(signal: AbortSignal): Promise<Command[]> {
  const { sessions } = await sessionApi.list(new URLSearchParams({ limit: `${sessionsMax}` }), signal)
  return sessions.map(({ id }) => sessionCommand(id))
}

async function views(): Promise<Command[]> {
  await loadViews()
  return (savedViews() ?? []).map(({ name, search }) => ({
    ...{ name, kind: 'Saved view', run: () => navigate(`/logs${search}`) },
  }))
}

/**
 * Reports the results of each source as they arrive, so that a slow source delays no other. Errors are ignored: pages
 * and actions still work, and the opened page shows its own error.
 */
export function loadCommands(found: (commands: Command[]) => void, signal: AbortSignal): void {
  const sources = [...fields.map(valuesOf), registeredTools(signal), newestSessions(signal), views()]
  for (const source of sources)
    source.then(
      (commands) => signal.aborted || found(commands),
      () => {},
    )
}

const idCharsMax = 200

/** The session with exactly this ID, of any age. The newest sessions also match by part of their ID. */
export async function exactSession(typed: string, signal: AbortSignal): Promise<Command | null> {
  const id = typed.trim()
  if (id.length < 3 || id.length > idCharsMax) return null
  const params = new URLSearchParams({ sessionId: id, limit: '1' })
  const { events } = await api.eventsWhere(params, signal)
  return events.length === 0 ? null : sessionCommand(id)
}

/** One command per value: a tool may be both registered and called. */
export function merged(groups: readonly Command[]): Command[] {
  const byName = new Map<string, Command>()
  for (const command of groups) {
    const key = `${command.kind}\n${command.name}`
    const known = byName.get(key)
    if (known === undefined || (command.events ?? 0) > (known.events ?? 0)) byName.set(key, command)
  }
  return [...byName.values()]
}
