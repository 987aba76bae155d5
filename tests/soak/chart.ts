/** The picture of a soak: one panel for each series, as SVG. */
import type { Sample, Trend } from './measure.ts'

const width = 340
const height = 150
const columns = 3
const margin = 14

/** Vertical lines mark starts of the server; a series that rises is red. */
export function soakChart(title: string, samples: Sample[], trends: Trend[], startsS: number[]): string {
  const endS = samples.at(-1)?.atS ?? 1
  const panels = trends.map((trend, index) => {
    const x = (index % columns) * (width + margin)
    const y = Math.floor(index / columns) * (height + margin) + 40
    return `<g transform="translate(${x + margin} ${y})">${panel(trend, samples, startsS, endS)}</g>`
  })
  const w = columns * (width + margin) + margin
  const h = Math.ceil(trends.length / columns) * (height + margin) + 40 + margin
  const size = `width="${w}" height="${h}" viewBox="0 0 ${w} ${h}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="11">
<rect width="${w}" height="${h}" fill="#fff"/>
<text x="${margin}" y="24" font-size="15" font-weight="600">${escaped(title)}</text>
${panels.join('\n')}
</svg>
`
}

function panel({ series, early, late, isRising }: Trend, samples: Sample[], startsS: number[], endS: number) {
  const points = samples.flatMap(({ atS, values }) => {
    return values[series] === undefined ? [] : [[atS, values[series]!] as const]
  })
  const top = 26
  const bottom = height - 18
  // One outlier, such as an answer during a restart, must not flatten the rest.
  const sorted = points.map(([, value]) => value).toSorted((a, b) => a - b)
  const max = Math.max((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 1.15, 1)
  const x = (atS: number) => ((atS / endS) * width).toFixed(1)
  const y = (value: number) => (bottom - (Math.min(value, max) / max) * (bottom - top)).toFixed(1)
  const line = points.map(([atS, value]) => `${x(atS)},${y(value)}`).join(' ')
  const color = isRising ? '#c62828' : '#1f6feb'
  const marks = startsS.map(
    (atS) => `<path d="M${x(atS)} ${top}V${bottom}" stroke="#bbb" stroke-dasharray="3 3"/>`,
  )
  return `<rect width="${width}" height="${height}" fill="none" stroke="#ddd"/>
<text x="8" y="16" font-weight="600">${escaped(series)}</text>
<text x="${width - 8}" y="16" text-anchor="end" fill="#555">${shown(early)} → ${shown(late)}</text>
${marks.join('')}<polyline points="${line}" fill="none" stroke="${color}"/>
<text x="4" y="${height - 5}" fill="#777">0 to ${shown(max)}</text>
<text x="${width - 4}" y="${height - 5}" text-anchor="end" fill="#777">${(endS / 60).toFixed(0)} min</text>`
}

function shown(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
