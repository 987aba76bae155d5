/** The theme (light, dark or the system's, stored in the browser) and whether the page is being printed. */
import { computed, effect, signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const storageKey = 'sightglass.theme'

function stored(): Theme {
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

/** Applies the stored theme and every later choice. */
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
      // The choice then holds until the page is left.
    }
  })
}

/** Whether the page goes to paper now: then tables show all their rows, in ink that suits white. */
export const printing = signal(false)

/** Browsers announce printing by events or by the media query. */
function watchPrinting(): void {
  const paper = window.matchMedia('print')
  paper.addEventListener('change', () => (printing.value = paper.matches))
  window.addEventListener('beforeprint', () => (printing.value = true))
  window.addEventListener('afterprint', () => (printing.value = paper.matches))
}
