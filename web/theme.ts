/**
 * Light, dark or as the system has it; kept in the browser, because it belongs to the reader and not to the account.
 */
import { effect, signal } from '@preact/signals'
import { printing, watchPrinting } from './printing.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const storageKey = 'sightglass.theme'

function kept(): Theme {
  try {
    const value = localStorage.getItem(storageKey)
    return themes.find((theme) => theme === value) ?? 'system'
  } catch {
    return 'system' // storage may be forbidden; the system's choice is then good enough
  }
}

export const theme = signal<Theme>('system')

/** Applies the kept theme and every later choice. */
export function startTheme(): void {
  watchPrinting()
  theme.value = kept()
  effect(() => {
    const chosen = theme.value
    const shown = printing.value ? 'light' : chosen
    if (shown === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = shown
    try {
      localStorage.setItem(storageKey, chosen)
    } catch {
      // The choice then holds until the page is left.
    }
  })
}
