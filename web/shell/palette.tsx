/** The command palette: finds pages, actions, vendors, agents, tools, sessions and views by part of their name. */
import './palette.css'
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { isoTime, now } from '../app/clock.ts'
import { navigate } from '../app/router.ts'
import { routes } from '../routes.ts'
import { settingsSections } from '../pages/settings/sections.tsx'
import { signOut } from '../app/session.ts'
import { paletteOpen, shortcutsOpen } from '../components/page-frame.tsx'
import { theme, themes } from '../app/theme.ts'
import { Dialog } from '../components/dialog.tsx'
import { Text } from '../components/text.tsx'
import { api, get, sessionApi } from '../api/api.ts'
import { loadViews, savedViews, viewPath } from '../app/saved-views.ts'
import { registryApi } from '../api/registry-api.ts'
import { dayMs } from '../../db/contract/units.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

const action = (name: string, run: () => void): Command => ({ name, kind: '', run })

/** Pages and actions, shown before anything is typed. */
function ownCommands(): Command[] {
  return [
    ...routes.map((route) => action(route.name, () => navigate(route.path))),
    action('Explore', () => navigate('/analytics/explore')),
    ...settingsSections.map(({ slug, name }) =>
      action(`Settings: ${name}`, () => navigate(`/settings/${slug}`)),
    ),
    ...themes.map((name) => action(`Theme: ${name}`, () => void (theme.value = name))),
    action('Keyboard shortcuts', () => void (shortcutsOpen.value = true)),
    // If sign-out fails, the person stays signed in and the page keeps working.
    action('Sign out', () => void signOut().catch(() => {})),
  ]
}

/** Searches for the typed text in the events of the last 24 hours. */
function findInEvents(typed: string): Command {
  const since = isoTime(Math.floor(now() / 3_600_000) * 3_600_000 - dayMs)
  const search = new URLSearchParams({ q: typed.trim().slice(0, 200), since })
  return { name: typed.trim(), kind: 'Find in events', run: () => navigate(`/logs?${search}`) }
}

/** Substring matches first, then names that contain the typed letters in order. */
function ownMatches(typed: string): Command[] {
  const commands = ownCommands()
  const parts = bestOf(
    commands.map((command) => ({ ...command, kind: command.name })),
    typed,
  ).map(({ name }) => name)
  const otherCommands = commands.filter(({ name }) => !parts.includes(name) && matches(name, typed))
  return [...parts.flatMap((name) => commands.filter((command) => command.name === name)), ...otherCommands]
}

function useResults(typed: string): Command[] {
  const knownCommands = useSignal<Command[]>([])
  const exact = useSignal<Command | null>(null)
  useEffect(() => {
    const stop = new AbortController()
    loadCommands(
      (commands) => (knownCommands.value = merged([...knownCommands.peek(), ...commands])),
      stop.signal,
    )
    return () => stop.abort()
  }, [])
  useEffect(() => {
    const stop = new AbortController()
    exact.value = null
    const timer = setTimeout(() => {
      exactSession(typed, stop.signal).then(
        (command) => stop.signal.aborted || (exact.value = command),
        () => {},
      )
    }, settleMs)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [typed])
  const allCommands = knownCommands.value
  const session = exact.value
  return useMemo(() => {
    if (typed.trim() === '') return ownCommands()
    const values = bestOf(merged(session === null ? allCommands : [...allCommands, session]), typed)
    return [...ownMatches(typed), ...values, findInEvents(typed)]
  }, [typed, allCommands, session])
}

const settleMs = 200

export function Palette() {
  const typed = useSignal('')
  const activeIndex = useSignal(0)
  const close = (): void => void (paletteOpen.value = false)
  const results = useResults(typed.value)
  const active = Math.min(activeIndex.value, results.length - 1)
  const run = (command: Command | undefined): void => {
    if (!command) return
    close()
    command.run()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') activeIndex.value = Math.min(active + 1, results.length - 1)
    else if (event.key === 'ArrowUp') activeIndex.value = Math.max(active - 1, 0)
    else if (event.key === 'Enter') run(results[active])
    else return
    event.preventDefault()
    document.getElementById(`command-${activeIndex.value}`)?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <Dialog title="Go to" class="palette" onClose={close}>
      <input
        role="combobox"
        aria-label="Page or action"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={active >= 0 ? `command-${active}` : undefined}
        data-first-focus
        placeholder="Page, vendor, agent, tool or session"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          activeIndex.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="commands" role="listbox" aria-label="Results">
        {results.map((command, i) => (
          <li
            id={`command-${i}`}
            key={`${command.kind}\n${command.name}`}
            role="option"
            aria-selected={i === active}
            onClick={() => run(command)}
          >
            <Text value={command.name} max={60} />
            {command.kind !== '' && <small class="muted">{command.kind}</small>}
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

/** A result of the search. */
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
  const text = folded(name)
  const part = folded(typed.trim())
  if (part === '') return 1
  const index = text.indexOf(part)
  if (index <= 0) return index === 0 ? 3 : 0
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
export function bestOf(commands: readonly Command[], typed: string): Command[] {
  const rankedCommands = commands
    .map((command) => ({ command, rank: rank(command.name, typed) }))
    .filter((entry) => entry.rank > 0)
    .sort((a, b) => b.rank - a.rank || (b.command.events ?? 0) - (a.command.events ?? 0))
  const shown = new Map<string, number>()
  return rankedCommands.flatMap(({ command }) => {
    const shownCount = shown.get(command.kind) ?? 0
    shown.set(command.kind, shownCount + 1)
    return shownCount < perKind ? [command] : []
  })
}

/** Event fields whose values are found by name, and the page that shows such a value. */
const fields: { by: string; kind: string; hrefOf: (value: string) => string }[] = [
  { by: 'vendor', kind: 'Vendor', hrefOf: (vendor) => `/detect?${new URLSearchParams({ vendor })}` },
  { by: 'name', kind: 'Agent', hrefOf: (name) => `/logs?${new URLSearchParams({ name })}` },
  { by: 'tool', kind: 'Tool', hrefOf: (tool) => `/logs?${new URLSearchParams({ tool })}` },
]

/** Whole days that certainly have counts. */
const countedDays = countsRetentionDays - 1
const sessionsMax = 100
const toolsMax = 1_000

async function valuesOf({ by: field, kind, hrefOf }: (typeof fields)[number]): Promise<Command[]> {
  const since = isoTime(Math.floor(now() / dayMs) * dayMs - countedDays * dayMs)
  const { rows } = await get<{ rows: { value: string | null; count: number }[] }>(
    `/api/breakdown?${new URLSearchParams({ by: field, since })}`,
  )
  const counts = new Map<string, number>()
  for (const { value, count } of rows)
    if (value !== null && value !== '') counts.set(value, (counts.get(value) ?? 0) + count)
  return Array.from(counts, ([value, events]) => ({
    name: value,
    kind,
    events,
    run: () => navigate(hrefOf(value)),
  }))
}

/** A registered tool opens its own page; a tool that is only called opens its calls. */
async function registeredTools(signal: AbortSignal): Promise<Command[]> {
  const { list } = await registryApi.tools([], toolsMax, signal)
  return list.map(({ siteId: site, name: tool }) => ({
    name: tool,
    kind: 'Tool',
    events: Number.MAX_SAFE_INTEGER,
    run: () => navigate(`/tools?${new URLSearchParams({ site, tool })}`),
  }))
}

const sessionCommand = (id: string): Command => ({
  name: id,
  kind: 'Session',
  run: () => navigate(`/sessions?${new URLSearchParams({ session: id })}`),
})

async function newestSessions(signal: AbortSignal): Promise<Command[]> {
  const { sessions } = await sessionApi.list(new URLSearchParams({ limit: `${sessionsMax}` }), signal)
  return sessions.map(({ id }) => sessionCommand(id))
}

async function views(): Promise<Command[]> {
  await loadViews()
  return (savedViews() ?? []).map((view) => ({
    name: view.name,
    kind: 'Saved view',
    run: () => navigate(viewPath(view) + view.search),
  }))
}

/**
 * Reports the results of each source as they arrive, so that a slow source delays no other. Errors are ignored: pages
 * and actions still work, and the opened page shows its own error.
 */
function loadCommands(onCommands: (commands: Command[]) => void, signal: AbortSignal): void {
  const sources = [...fields.map(valuesOf), registeredTools(signal), newestSessions(signal), views()]
  for (const source of sources)
    source.then(
      (commands) => signal.aborted || onCommands(commands),
      () => {},
    )
}

const idCharsMax = 200

/** The session with exactly this ID, of any age. The newest sessions also match by part of their ID. */
async function exactSession(typed: string, signal: AbortSignal): Promise<Command | null> {
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
    const existingCommand = byName.get(key)
    if (existingCommand === undefined || (command.events ?? 0) > (existingCommand.events ?? 0))
      byName.set(key, command)
  }
  return [...byName.values()]
}
