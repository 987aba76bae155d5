/** Keyboard shortcuts of the shell and of the open page. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

export interface Shortcut {
  keys: string[] // names of KeyboardEvent.key; 'Control+k' (Command on a Mac); 'g l' for g, then l
  shown: string // in the list of shortcuts: "j or ↓"
  does: string
  run: () => void
}

export const shortcuts = signal<Shortcut[]>([])

/** True for keys typed into a field or an open dialog, which are not shortcuts of the page. */
function belongsElsewhere(event: KeyboardEvent): boolean {
  const target = event.target
  if (!(target instanceof Element)) return false
  if (target.closest('input, textarea, select, [contenteditable]')) return true
  if (event.key.startsWith('Arrow') && target.closest('pre')) return true // arrows scroll the block
  return document.querySelector('dialog:modal') !== null
}

function pressed(event: KeyboardEvent): string {
  return event.ctrlKey || event.metaKey ? `Control+${event.key.toLowerCase()}` : event.key
}

const sequenceMs = 1_200

export function listenForShortcuts(): void {
  let leaderAtMs = Number.NEGATIVE_INFINITY
  window.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing) return
    const keys = pressed(event)
    if (belongsElsewhere(event) && keys !== 'Control+k') return
    const onControl = event.target instanceof Element && event.target.closest('button, a, summary') !== null
    if (onControl && (keys === 'Enter' || keys === ' ')) return
    const inSequence = performance.now() - leaderAtMs < sequenceMs
    leaderAtMs = keys === 'g' ? performance.now() : Number.NEGATIVE_INFINITY
    const sequence = inSequence ? `g ${keys}` : keys
    const match = shortcuts.peek().findLast((shortcut) => shortcut.keys.includes(sequence))
    if (!match) return
    event.preventDefault()
    match.run()
  })
}

/** Adds shortcuts while the component is mounted. */
export function useShortcuts(pageShortcuts: Shortcut[]): void {
  useEffect(() => {
    shortcuts.value = [...shortcuts.peek(), ...pageShortcuts]
    return () => (shortcuts.value = shortcuts.peek().filter((shortcut) => !pageShortcuts.includes(shortcut)))
    // The shortcuts of the first render stay, because their actions read signals instead of values of the render.
  }, [])
}
