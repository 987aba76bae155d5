/** The theme (light, dark or the system's, stored in the browser) and whether the page is being printed. */
import { computed, effect, signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const storageKey = 'sightglass.theme'

function stored(): Theme {
  try {
    const value = localStorage.getItem(storageKey)
    return themes.find((theme) => theme === value) ?? 'system'
  } catch {
    return 'system' // Storage may be disabled.
  }
}

export const theme = signal<Theme>('system')

const systemDark = signal(false)

/** The visible theme: the choice here or in the system. Printed pages are light. */
export const themeOnScreen = computed(() => {
  if (printing.value) return 'light'
  return theme.value === 'system' ? (systemDark.value ? 'dark' : 'light') : theme.value
})

/** Applies the stored theme and every later change. */
export function startTheme(): void {
  watchPrinting()
  const dark = window.matchMedia('(prefers-color-scheme: dark)')
  systemDark.value = dark.matches
  dark.addEventListener('change', () => (systemDark.value = dark.matches))
  theme.value = stored()
  effect(() => {
    const chosen = theme.value
    const shown = printing.value ? 'light' : chosen
    if (shown === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = shown
    try {
      localStorage.setItem(storageKey, chosen)
    } catch {
      // The choice lasts until the page closes.
    }
  })
}

/** True while the page is printed. Tables then render all rows, in colours for white paper. */
export const printing = signal(false)

/** Browsers announce printing with events or with the media query. */
function watchPrinting(): void {
  const paper = window.matchMedia('print')
  paper.addEventListener('change', () => (printing.value = paper.matches))
  window.addEventListener('beforeprint', () => (printing.value = true))
  window.addEventListener('afterprint', () => (printing.value = paper.matches))
}
