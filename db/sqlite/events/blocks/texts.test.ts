/** Ids and sessions come back, and an id is found in exactly the frame that holds it. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { hasId, holdsId, openIdFrame, openIds, openNames, openSessions, packNames } from './texts.ts'

test('any names come back, and each id is in the frame of its row alone', () => {
  const texts = fc.uniqueArray(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 256, size: 'max' })
  fc.assert(
    fc.property(texts, (all) => {
      const ids = all.map((text) => JSON.stringify(text))
      const sessions = ids.toReversed()
      const packed = packNames(ids, sessions)
      expect(openIds(packed, ids.length)).toEqual(ids)
      expect(openSessions(packed, ids.length)).toEqual(sessions)
      expect(ids.every((id) => holdsId(packed, ids.length, id))).toBe(true)
      expect(holdsId(packed, ids.length, '"never sent, and long enough"')).toBe(false)
      const single = openNames(packed, ids.length)
      expect(ids.map((_, row) => [single.id(row), single.session(row)])).toEqual(
        ids.map((id, row) => [id, sessions[row]!]),
      )
      expect(openIdFrame(packed, ids.length)).toBeNull()
      for (let row = 0; row < ids.length; row += 64) {
        const frame = openIdFrame(packed, row)!
        expect([frame.firstRow, frame.rows]).toEqual([row, Math.min(64, ids.length - row)])
        const within = ids.map((id) => hasId(frame, id))
        expect(within).toEqual(ids.map((_, other) => other >= row && other < row + 64))
        expect(hasId(frame, '"never sent, and long enough"')).toBe(false)
      }
    }),
    { numRuns: 60 },
  )
})
