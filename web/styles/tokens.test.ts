/** Colours used together are readable in both themes (WCAG 2.2 AA), and no other sheet contains a colour. */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'

const sheet = await Bun.file(join(import.meta.dir, 'tokens.css')).text()

/** Token → its colour in the light and in the dark theme. */
const colours = new Map(
  [...sheet.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);/g)].map(([, name, light, dark]) => [
    name ?? '',
    { light: light ?? '', dark: dark ?? '' },
  ]),
)

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((offset) => {
    const part = Number.parseInt(hex.slice(offset, offset + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (high + 0.05) / (low + 0.05)
}

const grounds = ['bg', 'panel', 'sunken', 'accent-soft']

const textPairs: [string, string][] = [
  ...['ink', 'ink-2', 'ink-3', 'accent'].flatMap((ink) =>
    grounds.map((ground): [string, string] => [ink, ground]),
  ),
  ...['allow', 'block', 'error', 'review'].map((tone): [string, string] => [tone, `${tone}-soft`]),
  ...['allow', 'block', 'error', 'review'].map((tone): [string, string] => ['ink', `${tone}-soft`]),
  ['ink-3', 'error-soft'],
  ['accent', 'block-soft'],
  ['block', 'panel'],
  ['block', 'sunken'],
  ['review', 'sunken'],
  ['accent-ink', 'accent'],
  ['panel', 'error'],
]

/** Edges of fields, focus rings and marks with a meaning need a contrast of 3:1 with their background. */
const shapePairs: [string, string][] = [
  ...['control-line', 'focus', 'allow', 'block', 'error'].flatMap((mark) =>
    ['bg', 'panel'].map((ground): [string, string] => [mark, ground]),
  ),
  ...['webmcp', 'dom', 'screenshot', 'crawler', 'other'].map((name): [string, string] => [
    `class-${name}`,
    'panel',
  ]),
]

describe.each(['light', 'dark'] as const)('%s', (theme) => {
  test.each(textPairs)('text %s on %s', (ink, ground) => {
    expect(
      contrast(colours.get(ink)?.[theme] ?? '', colours.get(ground)?.[theme] ?? ''),
    ).toBeGreaterThanOrEqual(4.5)
  })
  test.each(shapePairs)('shape %s on %s', (mark, ground) => {
    expect(
      contrast(colours.get(mark)?.[theme] ?? '', colours.get(ground)?.[theme] ?? ''),
    ).toBeGreaterThanOrEqual(3)
  })
})

test('the contrast function is correct for black on white and a known grey', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21, 5)
  expect(contrast('#767676', '#ffffff')).toBeCloseTo(4.54, 2)
})

test('no other sheet contains a colour', async () => {
  const tokenNames: string[] = []
  for await (const path of new Bun.Glob('**/*.css').scan(join(import.meta.dir, '..'))) {
    if (path.endsWith('tokens.css')) continue
    const css = (await Bun.file(join(import.meta.dir, '..', path)).text()).replace(/\/\*[\s\S]*?\*\//g, '')
    for (const [colour] of css.matchAll(/#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch|oklab)a?\(/gi))
      tokenNames.push(`${path}: ${colour}`)
  }
  expect(tokenNames).toEqual([])
})
