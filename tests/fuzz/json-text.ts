/** JSON as text for tests: random texts in every spelling the format allows, and one canonical form to compare by. */
import fc from 'fast-check'

/** Numbers far beyond what a double holds, and every odd spelling of small ones. */
const numberText = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => String(value)),
  fc.integer().map(String),
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?$/),
  fc.constantFrom(
    '-0',
    '-0.0',
    '0e0',
    '1e999',
    '-1E400',
    '1e-400',
    '9007199254740993',
    '0.1000000000000000055',
  ),
)

/** A string in JSON; some characters are spelled as escapes. NUL and half pairs are left out. */
const stringText = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 12 }), fc.infiniteStream(fc.nat(9)))
  .map(
    ([value, dice]) => `"${[...value.replaceAll('\0', '')].map((char) => spell(char, next(dice))).join('')}"`,
  )

function next(dice: Iterator<number>): number {
  return Number(dice.next().value)
}

function spell(char: string, die: number): string {
  if (die > 2) return JSON.stringify(char).slice(1, -1)
  if (die === 2 && char === '/') return '\\/'
  const units = char.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'))
  return units.map((hex) => `\\u${die === 1 ? hex.toUpperCase() : hex}`).join('')
}

/** Names that have broken parsers, names that JavaScript reorders (integers come first), and any other. */
const nameText = fc.oneof(
  fc.constantFrom('"__proto__"', '"constructor"', '"toJSON"', '"hasOwnProperty"', '"1"', '"0"', '""', '"a"'),
  stringText,
)

const gap = fc.constantFrom('', '', '', ' ', '\n', '\t ', '\r\n')

/** Any JSON value as text, at most four levels deep, with spaces and duplicate fields. */
export const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.oneof(fc.constantFrom('null', 'true', 'false'), numberText, stringText),
    fc
      .tuple(gap, fc.array(tie('value'), { maxLength: 5 }))
      .map(([space, items]) => `[${space}${items.join(`${space},`)}]`),
    objectOf(fc.tuple(nameText, tie('value')), gap),
  ),
})).value

function objectOf(member: fc.Arbitrary<[string, string]>, space: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(space, fc.array(member, { maxLength: 6 }))
    .map(
      ([separator, members]) =>
        `{${members.map(([name, value]) => `${name}${separator}:${separator}${value}`).join(',')}}`,
    )
}

/**
 * A canonical spelling of a JSON text, parsed without JSON.parse: fields sorted, the last of duplicates, numbers as
 * exact decimals (the sign of zero included), strings as JSON.stringify writes them.
 */
export function canonical(text: string): string {
  let position = 0
  const space = (): void => {
    while (' \n\r\t'.includes(text[position] ?? 'x')) position++
  }
  const token = (pattern: RegExp): string => {
    pattern.lastIndex = position
    const match = pattern.exec(text)?.[0]
    if (match === undefined) throw new Error(`no ${pattern.source} at ${position}`)
    position += match.length
    space()
    return match
  }
  const list = (close: string, item: () => void): void => {
    token(/[[{]/y)
    while (text[position] !== close) {
      item()
      if (text[position] !== close) token(/,/y)
    }
    token(/[\]}]/y)
  }
  const string = (): string => JSON.stringify(JSON.parse(token(/"(?:[^"\\]|\\.)*"/y)))
  const value = (): string => {
    const first = text[position]
    if (first === '"') return string()
    if (first === '[') {
      const items: string[] = []
      list(']', () => items.push(value()))
      return `[${items.join()}]`
    }
    if (first === '{') {
      const members = new Map<string, string>()
      list('}', () => {
        const name = string()
        token(/:/y)
        members.set(name, value())
      })
      return `{${[...members]
        .map(([name, inner]) => `${name}:${inner}`)
        .toSorted()
        .join()}}`
    }
    const scalar = token(/[-+.\w]+/y)
    return /^[tfn]/.test(scalar) ? scalar : decimal(scalar)
  }
  space()
  return value()
}

/** A JSON number as sign, digits without zeros at either end, and exponent. */
function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const allDigits = (whole + fraction).replace(/^0+/, '')
  const digits = allDigits.replace(/0+$/, '')
  return digits === ''
    ? `${sign}0`
    : `${sign}${digits}e${Number(exponent) - fraction.length + allDigits.length - digits.length}`
}
