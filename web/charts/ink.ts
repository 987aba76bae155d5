/** The colours of the theme as a canvas needs them: tokens resolved by the browser itself. */
import type { ChartInk } from './chart-options.ts'

/** Of one theme: every reading has the browser work out the styles of the whole page. */
let known = { theme: '', values: new Map<string, string>() }

/** `theme` is the one on the screen. */
export function readInk(host: HTMLElement, theme: string, tokens: readonly string[]): ChartInk {
  if (known.theme !== theme) known = { theme, values: new Map() }
  const { values } = known
  const font = values.get('font') ?? getComputedStyle(host).fontFamily
  values.set('font', font)
  const colour = (token: string): string => {
    const value = values.get(token) ?? resolved(host, token)
    values.set(token, value)
    return value
  }
  return {
    line: colour('line'),
    text: colour('ink-3'),
    select: colour('accent-soft'),
    font: `11px ${font}`,
    colours: tokens.map(colour),
  }
}

/** A token's value is a function of the theme, which only the use as a colour resolves. */
function resolved(host: HTMLElement, token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${token})`
  host.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
