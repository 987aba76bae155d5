/** What is parsed and written in steps is what `JSON.parse`, `JSON.stringify` and `canonicalText` make of it. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { jsonText } from '../../tests/fuzz/json-text.ts'
import { runs } from '../../tests/support/runs.ts'
import { atOnce } from '../http/slices.ts'
import { canonicalText, exactJson } from './json-scan.ts'
import { longValue, shortValue } from './json-steps.ts'
import { digestInSteps, exactInSteps, parseInSteps, textInSteps } from './json-values.ts'

/** JSON texts of which some are larger than a piece, and some that are no JSON. */
const texts = fc
  .record({
    inner: fc.array(jsonText, { minLength: 1, maxLength: 4 }),
    times: fc.constantFrom(1, 3, 2_500),
    isList: fc.boolean(),
    space: fc.constantFrom('', ' ', '\n\t'),
    edit: fc.option(fc.tuple(fc.nat(), fc.constantFrom('', ',', '"', ']', '}', '\\', '1', 'x')), { freq: 3 }),
  })
  .map(({ inner, times, isList, space, edit }) => {
    const items = Array.from({ length: times }, (_, index) => inner[index % inner.length]!)
    const text = isList
      ? `[${space}${items.join(`${space},`)}${space}]`
      : `{${items.map((item, index) => `"f${index % 2_400}"${space}:${item}`).join(`,${space}`)}}`
    if (edit === null) return text
    const editIndex = edit[0] % text.length
    return text.slice(0, editIndex) + edit[1] + text.slice(editIndex + 1)
  })
  .map((text) => text.toWellFormed()) // as all text of UTF-8 is

function parsed(text: string, levels: number | null = null): unknown {
  const json = Buffer.from(text)
  const result = atOnce(levels === null ? parseInSteps(json, 0) : exactInSteps(json, 0, levels))
  return result === null || result.end !== json.length ? 'invalid' : { value: result.value }
}

function expected(text: string): unknown {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return 'invalid'
  }
}

describe('in steps', () => {
  test('texts are parsed as JSON.parse parses them, and refused where it refuses them', () => {
    fc.assert(
      fc.property(texts, (text) => {
        // Text around the value is the caller's matter.
        fc.pre(text.trim() === text)
        expect(parsed(text)).toEqual(expected(text))
      }),
      { numRuns: runs(300) },
    )
  })

  test('values are written and hashed as in one piece, with the spelling of their numbers', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const whole = expected(text)
        fc.pre(whole !== 'invalid')
        const { value } = whole as { value: unknown }
        expect(atOnce(textInSteps(value))).toBe(JSON.stringify(value))
        const hash = new Bun.CryptoHasher('sha256').update(canonicalText(value)).digest('hex')
        expect(atOnce(digestInSteps(value))).toBe(hash)
        expect(parsed(text, 0)).toEqual({ value: exactJson(text) })
        const inside = parsed(text, 1) as { value: object }
        expect(Object.keys(inside.value)).toEqual(Object.keys(value as object))
        const members = Object.entries(inside.value).map(([name, member]) => {
          return Array.isArray(value) ? String(member) : `${JSON.stringify(name)}:${String(member)}`
        })
        expect(Array.isArray(value) ? `[${members.join(',')}]` : `{${members.join(',')}}`).toBe(
          exactJson(text),
        )
      }),
      { numRuns: runs(100) },
    )
  })

  test('a scan in parts ends where a scan in one piece ends', () => {
    const padded = fc.tuple(
      texts,
      fc.constantFrom(0, 131_060, 131_072),
      fc.constantFrom('x', '\\"', '\\\\', '1'),
    )
    fc.assert(
      fc.property(padded, ([text, padding, part]) => {
        const filler = part.repeat(padding / part.length)
        const json = Buffer.from(`[${part === '1' ? `1${filler}` : `"${filler}"`},${text}]`)
        const short = shortValue(json, 0)
        const long = atOnce(longValue(json, 0))
        if (short !== null) expect(short).toEqual(long)
        if (expected(json.toString()) !== 'invalid') expect(long.at).toBe(json.length)
      }),
      { numRuns: runs(300) },
    )
  })
})
