/** Text for limits and for people: lengths in code points, truncation, sizes, and the nearest known word. */

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

/** The longest prefix of whole code points with at most `bytesMax` bytes of UTF-8. */
export function cutBytes(text: string, bytesMax: number): string {
  const start = text.slice(0, bytesMax) // a UTF-16 unit is at least one byte
  const bytes = new Uint8Array(bytesMax)
  const { read } = new TextEncoder().encodeInto(start, bytes)
  const isSplitPair =
    read > 0 && read === start.length && read < text.length && isHighSurrogate(start, read - 1)
  return start.slice(0, isSplitPair ? read - 1 : read)
}

function isHighSurrogate(text: string, index: number): boolean {
  return (text.charCodeAt(index) & 0xfc00) === 0xd800
}

/** Whether text can be stored: no NUL, and no unpaired surrogate, which UTF-8 cannot encode. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** Bytes for people, such as 1.5 GiB. */
export function sizeText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** The word that was probably meant: the fewest single-letter edits, else the only word with this prefix. */
export function nearest<W extends string>(typed: string, candidates: readonly W[]): W | null {
  let best: W | null = null
  // Allow a third of the letters; beyond that a suggestion is noise.
  let bestDistance = Math.max(1, Math.floor(typed.length / 3)) + 1
  for (const word of candidates) {
    const distance = editDistance(typed, word)
    if (distance < bestDistance) {
      best = word
      bestDistance = distance
    }
  }
  return best ?? onlyWithPrefix(typed, candidates)
}

/** `data-d` is a prefix of `data-dir` alone; a prefix of several words suggests nothing. */
function onlyWithPrefix<W extends string>(typed: string, candidates: readonly W[]): W | null {
  const words = typed.length < 3 ? [] : candidates.filter((word) => word.startsWith(typed))
  return words.length === 1 ? (words[0] ?? null) : null
}

function editDistance(a: string, b: string): number {
  let previousRow: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwap ? previousRow[j - 2]! + 1 : Infinity // two swapped letters count as one edit
      next.push(Math.min(replace, swap, row[j]! + 1, next[j - 1]! + 1))
    }
    previousRow = row
    row = next
  }
  return row[b.length]!
}
