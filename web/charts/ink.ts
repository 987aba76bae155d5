/** The colours of the theme as a canvas needs them: tokens resolved by the browser itself. */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { printing } from '../printing.ts'
import { theme } from '../theme.ts'
import type { ChartInk } from './chart-options.ts'

/** A token's value is a function of the theme, which only the use as a colour resolves. */
export function readInk(host: HTMLElement, tokens: readonly string[]): ChartInk {
  const probe = document.createElement('span')
  host.append(probe)
  const colour = (token: string): string => {
    probe.style.color = `var(--${token})`
    return getComputedStyle(probe).color
  }
  const { fontFamily } = getComputedStyle(host)
  const ink = {
    line: colour('line'),
    text: colour('ink-3'),
    select: colour('accent-soft'),
    font: `11px ${fontFamily}`,
    colours: tokens.map(colour),
  }
  probe.remove()
  return ink
}

/** Changes whenever the theme on the screen does: by the reader's choice here or in the system. */
export function useThemeOnScreen(): string {
  // Known before the first drawing, or every chart would be drawn twice where the system is dark.
  const media = useMemo(() => window.matchMedia('(prefers-color-scheme: dark)'), [])
  const dark = useSignal(media.matches)
  useEffect(() => {
    const changed = (): void => void (dark.value = media.matches)
    media.addEventListener('change', changed)
    return () => media.removeEventListener('change', changed)
  }, [])
  if (printing.value) return 'light'
  return theme.value === 'system' ? (dark.value ? 'dark' : 'light') : theme.value
}
