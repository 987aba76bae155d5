/** Text of events in answers to assistants: it was written by strangers, so it is escaped, cut and bounded. */
import { limits } from '../limits.ts'

/**
 * Characters that people do not see, or that change what they see: controls, direction marks, zero-width characters,
 * line separators, tags, private use, variation selectors beyond those of emoji.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u{fe00}-\u{fe0e}\u{e0100}-\u{e01ef}]/u

const short: { readonly [char: string]: string } = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function escapeOf(char: string): string {
  const code = char.codePointAt(0)!.toString(16)
  return short[char] ?? (code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\u{${code}}`)
}

/** Unseen characters as escapes, at most `charsMax` characters in all. A cut text ends with "…". */
export function clean(text: string, charsMax: number = limits.mcpTextCharsMax): string {
  if (text.length <= charsMax && !unseen.test(text)) return text
  let out = ''
  for (const char of text) {
    const next = unseen.test(char) ? escapeOf(char) : char
    if (out.length + next.length > charsMax - 1) return `${out}…`
    out += next
  }
  return out
}

/** The text whose escapes `clean` made; for ids that an assistant sends back. */
export function uncleaned(text: string): string {
  return text
    .replace(/\\u\{([0-9a-f]{5,6})\}|\\u([0-9a-f]{4})/g, (_, long?: string, four?: string) =>
      String.fromCodePoint(Math.min(Number.parseInt(long ?? four!, 16), 0x10ffff)),
    )
    .replace(/\\([nrt])/g, (_, letter: string) => ({ n: '\n', r: '\r', t: '\t' })[letter]!)
}

interface Budget {
  chars: number
}

/**
 * A JSON value with every text and name cleaned. After `charsMax` characters, the rest is left out; `isCut` says so,
 * also for a text that was cut.
 */
export function cleanJson(value: unknown, charsMax: number): { value: unknown; isCut: boolean } {
  const budget: Budget = { chars: charsMax }
  let isCut = false
  const text = (source: string): string => {
    const cleaned = clean(source)
    if (cleaned.endsWith('…') && !source.endsWith('…')) isCut = true
    budget.chars -= cleaned.length
    return cleaned
  }
  const copy = (node: unknown): unknown => {
    budget.chars -= 4
    if (typeof node === 'string') return text(node)
    if (typeof node !== 'object' || node === null) return node
    const visitItems = <T>(items: T[], visit: (item: T) => void): void => {
      for (const item of items) {
        if (budget.chars <= 0) {
          isCut = true
          return
        }
        visit(item)
      }
    }
    if (Array.isArray(node)) {
      const list: unknown[] = []
      visitItems(node, (item) => void list.push(copy(item)))
      return list
    }
    const fields: [string, unknown][] = []
    visitItems(Object.entries(node), ([name, item]) => void fields.push([text(name), copy(item)]))
    return Object.fromEntries(fields)
  }
  return { value: copy(value), isCut }
}
