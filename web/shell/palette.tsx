/** The command palette: finds pages, actions, vendors, agents, tools and sessions by part of their name. */
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
import { bestOf, type Command, exactSession, loadCommands, matches, merged } from './palette-search.ts'
import { Text } from '../components/text.tsx'

const action = (name: string, run: () => void): Command => ({ name, kind: '', run })

/** Pages and actions, shown before anything is typed. */
function ownCommands(): Command[] {
  return [
    ...routes.map((route) => action(route.name, () => navigate(route.path))),
    ...settingsSections.map(({ slug, name }) =>
      action(`Settings: ${name}`, () => navigate(`/settings/${slug}`)),
    ),
    ...themes.map((name) => action(`Theme: ${name}`, () => void (theme.value = name))),
    action('Keyboard shortcuts', () => void (shortcutsOpen.value = true)),
    // If sign-out fails, the person stays signed in and the page keeps working.
    action('Sign out', () => void signOut().catch(() => {})),
  ]
}

const dayMs = 86_400_000

/** Searches for the typed text in the events of the last 24 hours. */
function findInEvents(typed: string): Command {
  const since = isoTime(Math.floor(now() / 3_600_000) * 3_600_000 - dayMs)
  const search = new URLSearchParams({ q: typed.trim().slice(0, 200), since })
  return { name: typed.trim(), kind: 'Find in events', run: () => navigate(`/logs?${search}`) }
}

/** Substring matches first, then names that contain the typed letters in order. */
function ownMatches(typed: string): Command[] {
  const own = ownCommands()
  const parts = bestOf(
    own.map((command) => ({ ...command, kind: command.name })),
    typed,
  ).map(({ name }) => name)
  const others = own.filter(({ name }) => !parts.includes(name) && matches(name, typed))
  return [...parts.flatMap((name) => own.filter((one) => one.name === name)), ...others]
}

function useResults(typed: string): Command[] {
  const known = useSignal<Command[]>([])
  const exact = useSignal<Command | null>(null)
  useEffect(() => {
    const stop = new AbortController()
    loadCommands((commands) => (known.value = merged([...known.peek(), ...commands])), stop.signal)
    return () => stop.abort()
  }, [])
  useEffect(() => {
    const stop = new AbortController()
    exact.value = null
    const timer = setTimeout(() => {
      exactSession(typed, stop.signal).then(
        (found) => stop.signal.aborted || (exact.value = found),
        () => {},
      )
    }, settleMs)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [typed])
  const all = known.value
  const session = exact.value
  return useMemo(() => {
    if (typed.trim() === '') return ownCommands()
    const values = bestOf(merged(session === null ? all : [...all, session]), typed)
    return [...ownMatches(typed), ...values, findInEvents(typed)]
  }, [typed, all, session])
}

const settleMs = 200

export function Palette() {
  const typed = useSignal('')
  const at = useSignal(0)
  const close = (): void => void (paletteOpen.value = false)
  const found = useResults(typed.value)
  const active = Math.min(at.value, found.length - 1)
  const run = (command: Command | undefined): void => {
    if (!command) return
    close()
    command.run()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') at.value = Math.min(active + 1, found.length - 1)
    else if (event.key === 'ArrowUp') at.value = Math.max(active - 1, 0)
    else if (event.key === 'Enter') run(found[active])
    else return
    event.preventDefault()
    document.getElementById(`command-${at.value}`)?.scrollIntoView({ block: 'nearest' })
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
          at.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="commands" role="listbox" aria-label="Results">
        {found.map((command, i) => (
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
