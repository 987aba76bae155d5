/** The command palette: type a few letters of a page or an action, Enter goes there. */
import './palette.css'
import { useSignal } from '@preact/signals'
import { navigate } from '../router.ts'
import { routes } from '../routes.ts'
import { signOut } from '../session.ts'
import { paletteOpen, shortcutsOpen } from '../shell-state.ts'
import { theme, themes } from '../theme.ts'
import { Dialog } from './dialog.tsx'

interface Command {
  name: string
  run: () => void
}

function commands(): Command[] {
  return [
    ...routes.map((route) => ({ name: route.name, run: () => navigate(route.path) })),
    { name: 'Settings: SDK ingest keys', run: () => navigate('/settings/ingest-keys') },
    { name: 'Settings: API keys', run: () => navigate('/settings/api-keys') },
    { name: 'Settings: Ingest health', run: () => navigate('/settings/ingest-health') },
    { name: 'Settings: Your account', run: () => navigate('/settings/account') },
    { name: 'Settings: Webhooks', run: () => navigate('/settings/webhooks') },
    { name: 'Settings: Data and retention', run: () => navigate('/settings/data') },
    { name: 'Settings: Backups', run: () => navigate('/settings/backups') },
    { name: 'Settings: System', run: () => navigate('/settings/system') },
    ...themes.map((name) => ({ name: `Theme: ${name}`, run: () => void (theme.value = name) })),
    { name: 'Keyboard shortcuts', run: () => void (shortcutsOpen.value = true) },
    // A sign-out that fails leaves the reader signed in, and the page he is on goes on working.
    { name: 'Sign out', run: () => void signOut().catch(() => {}) },
  ]
}

/** Whether the letters of `typed` come in `name` in their order. */
export function matches(name: string, typed: string): boolean {
  let from = 0
  const inName = name.toLowerCase()
  for (const letter of typed.toLowerCase().replaceAll(' ', '')) {
    from = inName.indexOf(letter, from) + 1
    if (from === 0) return false
  }
  return true
}

export function Palette() {
  const typed = useSignal('')
  const at = useSignal(0)
  const close = (): void => void (paletteOpen.value = false)
  const found = commands().filter((command) => matches(command.name, typed.value))
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
        placeholder="Page or action"
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          at.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="commands" role="listbox" aria-label="Pages and actions">
        {found.map((command, i) => (
          <li
            id={`command-${i}`}
            key={command.name}
            role="option"
            aria-selected={i === active}
            onClick={() => run(command)}
          >
            {command.name}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="muted">Nothing is called so.</p>}
    </Dialog>
  )
}
