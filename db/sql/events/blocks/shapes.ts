/** Cuts a JSON text into its values and its shape, the rest. Shape and values together are the text again. */

export interface Cut {
  /** The text with `valueMark` in place of each value. */
  shape: string
  /** Of each value: the member's name before it, and how many values of this name precede it. */
  columns: string[]
  values: string[]
}

/** A control character, which cannot occur in valid JSON. */
export const valueMark = '\x01'

const quote = 34
const colon = 58
const backslash = 92

/**
 * Values are the inside of strings, numbers, true, false and null. Never fails: what is not JSON has other shapes. The
 * text must not contain the mark.
 */
export function cutText(text: string): Cut {
  const cut: Cut = { shape: '', columns: [], values: [] }
  const seen = new Map<string, number>()
  let name = ''
  let from = 0
  const add = (start: number, end: number): void => {
    cut.shape += text.slice(from, start) + valueMark
    cut.values.push(text.slice(start, end))
    const before = seen.get(name) ?? 0
    seen.set(name, before + 1)
    cut.columns.push(before === 0 ? name : `${name}${before}`)
    from = end
  }
  for (let at = 0; at < text.length;) {
    const char = text.charCodeAt(at)
    if (char === quote) {
      const end = stringEnd(text, at + 1)
      if (text.charCodeAt(end + 1) === colon) {
        name = text.slice(at, end + 1)
        at = end + 2
      } else {
        add(at + 1, end)
        at = end + 1
      }
    } else if (isWord(char)) {
      const start = at
      while (at < text.length && isWord(text.charCodeAt(at))) at++
      add(start, at)
    } else at++
  }
  cut.shape += text.slice(from)
  return cut
}

/** The closing quote of a string, or the end of the text. */
function stringEnd(text: string, from: number): number {
  for (let at = from; ;) {
    const end = text.indexOf('"', at)
    if (end < 0) return text.length
    let slashes = 0
    while (end - 1 - slashes >= from && text.charCodeAt(end - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return end
    at = end + 1
  }
}

/** Whether a character belongs to a number, or to true, false or null. */
function isWord(char: number): boolean {
  if (char >= 97) return char <= 122 // a to z
  if (char >= 48) return char <= 57 || char === 69 // digits, E
  return char === 43 || char === 45 || char === 46 // + - .
}
