/** The parts of a score that the dashboard shows add up to the score that the server computes. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { computedScore } from '../../server/api/registry/record.ts'
import { scoreParts, scoreWith } from '../../web/pages/knaph/snapshot.ts'
import type { JsonObject } from '../../web/api/registry-api.ts'

test('the filled parts add up to the score that the server computes', () => {
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
    fc.property(snapshot, (snapshotValue) => {
      // As JSON, which omits fields without a value.
      const sentSnapshot = JSON.parse(JSON.stringify(snapshotValue)) as JsonObject
      const filled = scoreParts(sentSnapshot).filter((scorePart) => scorePart.filled).length
      expect(scoreWith(filled)).toBe(computedScore(sentSnapshot))
    }),
  )
})
