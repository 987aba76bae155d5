/** The texts and numbers of shared pages, which the server draws, are those of the dashboard. */
import { expect, test } from 'bun:test'
import { shownMeasures } from '../../server/sharing/explore.ts'
import { sentences } from '../../server/sharing/overview.ts'
import { measureWords, type Measure } from '../../web/pages/analytics/explore-model.ts'
import { kinds } from '../../web/pages/overview/model.ts'
import type { Change, ChangeKind } from '../../server/counts/shapes.ts'

test('shared pages say the same as the dashboard', () => {
  const values = [0, 0.04, 1, 9.5, 99.6, 999.5, 12_418, 61_000, 1_048_575, 7_300_000, 2 * 86_400_000, 5e12]
  for (const [measure, { name, show, isSum }] of Object.entries(shownMeasures)) {
    const words = measureWords[measure as Measure]
    expect([name, isSum, ...values.map(show)]).toEqual([words.name, words.isSum, ...values.map(words.show)])
  }
  for (const [kind, { label, of }] of Object.entries(sentences))
    for (const count of [1, 2_000]) {
      const rates = { count: 4_000, before: 9_000 }
      const change: Change = {
        ...{ kind: kind as ChangeKind, name: 'x', claims: null, count, before: 3, steps: [] },
        of: kind.startsWith('failing') ? rates : null,
      }
      const words = kinds[change.kind]
      const { before, after } = words.sentence(change)
      expect([label, ...of(change)]).toEqual([words.label, before, after])
    }
})
