/** Measures and cuts text: code points, not UTF-16 units, and never through a character. */

/** Whether the text has more than `charsMax` code points. */
export function isLongerThan(text: string, charsMax: number): boolean {
  if (text.length <= charsMax) return false
  if (text.length > 2 * charsMax) return true
  let chars = 0
  for (const _ of text) chars++
  return chars > charsMax
}

/** The first `charsMax` code points. */
export function cutChars(text: string, charsMax: number): string {
  return isLongerThan(text, charsMax) ? [...text.slice(0, 2 * charsMax)].slice(0, charsMax).join('') : text
}

/** The longest beginning that has at most `bytesMax` bytes in UTF-8 and ends between two code points. */
export function cutBytes(text: string, bytesMax: number): string {
  const start = text.slice(0, bytesMax) // a UTF-16 unit is at least one byte
  const bytes = new Uint8Array(bytesMax)
  const { read } = new TextEncoder().encodeInto(start, bytes)
  const isSplitPair =
    read > 0 && read === start.length && read < text.length && isHighSurrogate(start, read - 1)
  return start.slice(0, isSplitPair ? read - 1 : read)
}

function isHighSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800
}

/** Text we keep: no NUL, no half of a surrogate pair (it could not be written as UTF-8). */
export function isKeepable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}
