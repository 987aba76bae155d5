/** Pillars: event types grouped by their first segment, for charts of all events. */
import type { EventCounts } from '../api/api.ts'
import type { Series } from './chart-model.ts'

/** A group of event types by their first segment. Each has its own page. */
interface Pillar {
  prefix: string
  name: string
  path: string
  colour: string
}

const pillars: Pillar[] = [
  { prefix: 'agent', name: 'Detect', path: '/detect', colour: 'series-5' },
  { prefix: 'auth', name: 'Auth', path: '/auth', colour: 'series-4' },
  { prefix: 'authz', name: 'Authz', path: '/authz', colour: 'series-2' },
  { prefix: 'tool', name: 'WebMCP Tools', path: '/tools', colour: 'series-1' },
  { prefix: 'memory', name: 'Knaph', path: '/knaph', colour: 'series-3' },
]

interface PillarCounts {
  pillar: Pillar | null // null: every other type
  count: number
  before: number
  steps: number[]
}

/** Types outside all pillars are grouped last. */
export function pillarCounts(types: { [type: string]: EventCounts }, steps: number): PillarCounts[] {
  const of = (pillar: Pillar | null): PillarCounts => ({
    pillar,
    count: 0,
    before: 0,
    steps: Array<number>(steps).fill(0),
  })
  const found = [...pillars.map(of), of(null)]
  for (const [type, counts] of Object.entries(types)) {
    const word = type.split('.', 1)[0]
    const mine = found.find((one) => one.pillar?.prefix === word) ?? found.at(-1)
    if (!mine) continue
    mine.count += counts.count
    mine.before += counts.before
    counts.steps.forEach((count, step) => (mine.steps[step] = (mine.steps[step] ?? 0) + count))
  }
  return found
}

export function pillarSeries(counts: readonly PillarCounts[]): Series[] {
  return counts
    .filter((one) => one.count > 0)
    .map(({ pillar, steps }) => ({
      name: pillar === null ? 'other' : `${pillar.name} (${pillar.prefix}.*)`,
      value: pillar?.prefix ?? null,
      colour: pillar?.colour ?? 'class-other',
      counts: steps,
    }))
}
