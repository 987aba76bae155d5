/** The texts and numbers of shared pages, which the server draws, are those of the dashboard. */
import { expect, test } from 'bun:test'
import { besideText, headlineCounts } from '../../server/counts/headlines.ts'
import { typeLabels, unitTypes } from '../../server/counts/unit-types.ts'
import { shownMeasures } from '../../server/sharing/explore.ts'
import { sentences } from '../../server/sharing/overview.ts'
import { measureWords, type Measure } from '../../web/pages/analytics/explore-model.ts'
import { besideText as dashboardBesideText } from '../../web/charts/unit.ts'
import { measureOf, measures } from '../../web/text/measures.ts'
import { kinds } from '../../web/pages/overview/model.ts'
import type { Change, ChangeKind } from '../../server/counts/shapes.ts'

test('shared pages say the same as the dashboard', () => {
  const values = [0, 0.04, 1, 9.5, 99.6, 999.5, 12_418, 61_000, 1_048_575, 7_300_000, 2 * 86_400_000, 5e12]
  for (const [measure, { name, show, isSum }] of Object.entries(shownMeasures)) {
    const words = measureWords[measure as Measure]
    expect([name, isSum, ...values.map(show)]).toEqual([words.name, words.isSum, ...values.map(words.show)])
  }
  const numbers = [
    [1, 'requests'],
    [2_000, 'requests'],
    [1, 'visits'],
    [9, 'events'],
    [2_000, null],
  ] as const
  for (const [kind, { label, of: formatParts }] of Object.entries(sentences))
    for (const [count, unit] of numbers) {
      const rates = { count: 4_000, before: 9_000 }
      const change: Change = {
        kind: kind as ChangeKind,
        name: 'x',
        claims: null,
        count,
        before: 3,
        steps: [],
        of: kind.startsWith('failing') ? rates : null,
        unit,
      }
      const words = kinds[change.kind]
      const { before: textBefore, after: textAfter } = words.sentence(change)
      expect([label, ...formatParts(change)]).toEqual([words.label, textBefore, textAfter])
    }
})

test('reports, messages and shared pages name their headlines as the dashboard does, and count the same types', () => {
  for (const [type, label] of Object.entries(typeLabels))
    expect([type, measureOf(type)?.name]).toEqual([type, label])
  const names = Object.values(measures).map(({ name }) => name)
  const counts = { count: 1, before: 1, steps: [1], outcomes: {} }
  const types = ['agent.requested', 'agent.detected', 'agent.referred', 'authz.evaluated', 'tool.executed']
  const all = Object.fromEntries(types.map((type) => [type, counts]))
  for (const name of ['requests', 'visits'] as const) {
    const label = typeLabels[unitTypes[name]]!
    const beside = name === 'visits' ? null : { visits: 1, sites: 2_000 }
    const unit = { name, type: unitTypes[name], label, comparable: true, beside }
    expect(besideText(unit)).toBe(dashboardBesideText(unit))
    const headlines = headlineCounts({ types: all, unit })
    for (const headline of headlines) expect(names).toContain(headline.name)
  }
})
