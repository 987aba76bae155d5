/**
 * Light, dark or as the system has it; kept in the browser, because it belongs to the reader and not to the account.
 */
import { computed, effect, signal } from '@preact/signals'
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

const systemDark = signal(false)

/** What the reader sees: by the choice here or in the system; paper is light. */
export const themeOnScreen = computed(() => {
  if (printing.value) return 'light'
  return theme.value === 'system' ? (systemDark.value ? 'dark' : 'light') : theme.value
})

/** Applies the kept theme and every later choice. */
export function startTheme(): void {
  watchPrinting()
  const dark = window.matchMedia('(prefers-color-scheme: dark)')
  systemDark.value = dark.matches
  dark.addEventListener('change', () => (systemDark.value = dark.matches))
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
