/** The lines by which two texts differ, in bounded time. */

export interface LineChange {
  kind: 'added' | 'removed'
  line: number // in the new text when added, in the old one when removed
  text: string
}

export interface LineChanges {
  added: number
  removed: number
  list: LineChange[] // in order of the texts; at most `shownMax`
}

const shownMax = 500
const textCharsMax = 500

/** Pairs of lines to compare: above it, whatever lies between the first and the last change counts as replaced. */
const pairsMax = 1_000_000

/** The fewest changes that turn one text into the other. Line breaks of any kind are equal. */
export function lineChanges(before: string, after: string): LineChanges {
  const [old, now] = [before, after].map((text) =>
    text.replace(/(?:\r\n|\r|\n)$/, '').split(/\r\n|\r|\n/),
  ) as [string[], string[]]
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const [left, right] = [old.slice(start, old.length - end), now.slice(start, now.length - end)]
  const kept = left.length * right.length > pairsMax ? [] : longestCommon(left, right)
  const changes: LineChanges = { added: 0, removed: 0, list: [] }
  const add = (kind: LineChange['kind'], line: number, text: string): void => {
    changes[kind]++
    if (changes.list.length < shownMax) changes.list.push({ kind, line, text: text.slice(0, textCharsMax) })
  }
  let [at, to] = [0, 0]
  for (const [oldAt, newAt] of [...kept, [left.length, right.length] as const]) {
    for (; at < oldAt; at++) add('removed', start + at + 1, left[at]!)
    for (; to < newAt; to++) add('added', start + to + 1, right[to]!)
    at++
    to++
  }
  return changes
}

/** Positions of a longest common subsequence, ascending. */
function longestCommon(left: string[], right: string[]): (readonly [number, number])[] {
  const width = right.length + 1
  const lengths = new Uint32Array((left.length + 1) * width)
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        left[i] === right[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
  const pairs: (readonly [number, number])[] = []
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) pairs.push([i++, j++])
    else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++
    else j++
  }
  return pairs
}
