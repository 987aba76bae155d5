/** Finds the word somebody probably meant: the smallest number of single-letter edits, when it is small enough. */

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
  return best
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replace, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
