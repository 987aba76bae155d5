/** What the dashboard says would raise a score is true: its parts make the very score that the server computes. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { computedScore } from '../../server/api/registry/record.ts'
import { scoreParts, scoreWith } from '../../web/pages/knaph/snapshot.ts'
import type { JsonObject } from '../../web/api/registry-api.ts'

test('the parts that are filled make the very score that the server computes', () => {
  const part = fc.oneof(fc.constant(undefined), fc.jsonValue({ maxDepth: 2 }))
  const inner = fc.record({ pages: part, navigation: part })
  const snapshot = fc.record({
    siteMap: fc.oneof(inner, part),
    workflows: part,
    policies: part,
    uiGuidance: part,
    pageContexts: part,
  })
  fc.assert(
    fc.property(snapshot, (given) => {
      // As it travels: members without a value are left out.
      const sent = JSON.parse(JSON.stringify(given)) as JsonObject
      const filled = scoreParts(sent).filter((one) => one.filled).length
      expect(scoreWith(filled)).toBe(computedScore(sent))
    }),
  )
})
