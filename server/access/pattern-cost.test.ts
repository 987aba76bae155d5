/** A line costs time in proportion to its length, whatever format a caller gives: looks at characters are counted. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs } from '../../tests/support/runs.ts'
import { UsageError } from '../errors.ts'
import { formatNamed, logFormats } from './formats.ts'
import { lineBytesMax } from './input.ts'
import { compilePattern, type LineParser } from './pattern.ts'

/** A text that counts how many of its characters are looked at. */
function countingText(text: string) {
  let looks = 0
  const counting = {
    length: text.length,
    charCodeAt: (index: number): number => (looks++, text.charCodeAt(index)),
    startsWith(part: string, position: number): boolean {
      looks += part.length
      return text.startsWith(part, position)
    },
    slice(start: number, end: number): string {
      const part = text.slice(start, end)
      looks += part.length
      return part
    },
    toString: (): string => text, // of expressions for dates and times, which have at most 20 characters
  }
  return { text: counting as unknown as string, looks: () => looks }
}

function looksAt(parse: LineParser, line: string): number {
  const { text, looks } = countingText(line)
  parse(text, 0, line.length)
  return looks()
}

const specs = [...'hmUqHrsbRuvDLTnekKMCdtx^~%'].map((spec) => `%${spec}`)
const pieces = fc.constantFrom(
  ...specs,
  '~h{, }',
  '~h{," }',
  ' ',
  '"',
  '[',
  ']',
  ':',
  ',',
  '-',
  '/',
  'a',
  '%^[',
  '%^[%d',
  '%^[%t',
  '"%u"',
)
const separators = fc.constantFrom(' ', '" "', ':', ', ', '|', ' [', '] ', '-')
const pattern = fc
  .oneof(
    fc.array(pieces, { minLength: 1, maxLength: 20 }).map((parts) => parts.join('')),
    // Mostly accepted.
    fc
      .array(fc.tuple(fc.constantFrom(...specs, '~h{, }'), separators), { minLength: 1, maxLength: 20 })
      .map((parts) => parts.flat().join('')),
  )
  .map((fields) => `${fields} %d:%t`.slice(-200))

const starts = ['', '1.2.3.4 - - [23/Nov/2026:07:32:28 +0000] "', '2026-11-23 07:32:28 ']
const units = [
  'a',
  '"',
  '\\',
  ' ',
  '[',
  ']',
  '-',
  ':',
  ',',
  '1',
  '{',
  '%',
  ', ',
  'a ',
  '1.2.3.4 ',
  '1.2.3.4, ',
  '[1',
  '\\"',
  '[23/Nov/2026:07:32:28 +0000',
  '[23/Nov/2026:07:32:28] ',
  '[07:32:28',
  '23/Nov/2026:07:32:28 ',
  ' - ',
  '""',
]

/** Each field and each literal of a format may look at the whole line, and so may each time behind a user name. */
const looksPerCharMax = 24
const looksMin = 4_000

function compiled(format: string): LineParser | null {
  try {
    return compilePattern(format)
  } catch (error) {
    if (error instanceof UsageError) return null
    throw error
  }
}

test('generated formats and hostile lines: twice the length costs at most twice as much', () => {
  let accepted = 0
  fc.assert(
    fc.property(pattern, fc.constantFrom(...starts), fc.constantFrom(...units), (format, start, unit) => {
      const parse = compiled(format)
      if (parse === null) return
      accepted++
      const lineOf = (chars: number): string => start + unit.repeat(chars / unit.length)
      const baseLooks = looksAt(parse, lineOf(4_000))
      const twice = looksAt(parse, lineOf(8_000))
      expect(twice).toBeLessThanOrEqual(baseLooks * 2.5 + looksMin)
      expect(twice).toBeLessThanOrEqual(8_000 * looksPerCharMax)
    }),
    { numRuns: runs(20_000) },
  )
  expect(accepted).toBeGreaterThan(runs(20_000) / 4)
})

test.each([
  ['%U%U%U%U %d:%t', '%U is followed by %U'],
  ['%u%d %t', '%u is followed by %d'],
  ['%^%h [%d:%t]', '%^ is followed by %h'],
  ['%h~h{, } %d %t', '%h is followed by ~h{…}'],
  ['~h{, }%u %d %t', '~h{…} is followed by %u'],
  ['[client~h{ ,]} %d %t', 'another separator'],
])('%s is refused, because nothing separates two of its fields', (format, message) => {
  expect(() => formatNamed(format)).toThrow(message)
})

/** The processor time of one pass in milliseconds, the least of some. */
function processorMs(work: () => void): number {
  const passes = Array.from({ length: 5 }, () => {
    const usageBefore = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(usageBefore)
    return (user + system) / 1_000
  })
  return Math.min(...passes)
}

describe('processor time', () => {
  const formatTexts = [
    '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"',
    '%v %h %^[%d:%t %^]',
    '~h{, } %^[%d:%t %^] %u',
    '%x %u',
  ]
  const formats = [...logFormats, ...formatTexts.map((format) => formatNamed(format))]

  test('twice as long lines cost at most 2.5 times as much in all formats together', () => {
    const texts = (chars: number): string[] =>
      starts.flatMap((start) =>
        units.map((unit) => (start + unit.repeat(chars / unit.length)).slice(0, chars)),
      )
    const pass = (lines: readonly string[]) => () => {
      for (const format of formats) {
        const parse = format.open()
        for (const line of lines) parse(line, 0, line.length)
      }
    }
    const short = texts(lineBytesMax / 2)
    const long = texts(lineBytesMax)
    pass(short)() // compiled by now
    expect(processorMs(pass(long)) / processorMs(pass(short))).toBeLessThan(2.5)
  })
})

describe('fields that a file declares', () => {
  const heading = (index: number): string => `#Fields: date time c-ip cs-uri-stem x-${index} cs(User-Agent)`

  test('more fields than any server has are refused', () => {
    const line = `#Fields: date time ${'cs(host) '.repeat(5_000)}`
    expect(formatNamed('w3c').open()(line, 0, line.length)).toBeNull()
  })

  test('a heading that comes again is not compiled again', () => {
    const parse = formatNamed('w3c').open()
    const pass = (isNew: boolean) => {
      let count = 0
      return () => {
        for (let index = 0; index < 20_000; index++) {
          const line = heading(isNew ? count++ : 0)
          parse(line, 0, line.length)
        }
      }
    }
    expect(processorMs(pass(false))).toBeLessThan(processorMs(pass(true)) / 3)
  })
})
