/** Finds the word somebody probably meant: the fewest single-letter edits, else the one word that it begins. */

export function nearest<W extends string>(typed: string, known: readonly W[]): W | null {
  let best: W | null = null
  // A third of the letters may be wrong; beyond that a suggestion is noise.
  let bestDistance = Math.max(1, Math.floor(typed.length / 3)) + 1
  for (const word of known) {
    const distance = editDistance(typed, word)
    if (distance < bestDistance) {
      best = word
      bestDistance = distance
    }
  }
  return best ?? begun(typed, known)
}

/** `data` is short for `data-dir`; what several words begin with says nothing. */
function begun<W extends string>(typed: string, known: readonly W[]): W | null {
  const words = typed.length < 3 ? [] : known.filter((word) => word.startsWith(typed))
  return words.length === 1 ? (words[0] ?? null) : null
}

function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwap ? before[j - 2]! + 1 : Infinity // two letters exchanged are one slip
      next.push(Math.min(replace, swap, row[j]! + 1, next[j - 1]! + 1))
    }
    before = row
    row = next
  }
  return row[b.length]!
}
