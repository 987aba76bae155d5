/** Texts that lie behind each other, a NUL after each: one is read alone, many are divided at once. */

/** Texts asked for one by one, before it pays to divide them all. */
const singlesMax = 8

/** Gives the text of an index, '' beyond the last. `bytes` are UTF-8; no text holds a NUL. */
export function nulTexts(bytes: Buffer): (index: number) => string {
  let asked = 0
  let all: string[] | null = null
  return (index) => {
    if (++asked > singlesMax) all ??= bytes.toString('utf8').split('\0')
    if (all !== null) return all[index] ?? ''
    let start = 0
    for (let before = 0; before < index; before++) {
      start = bytes.indexOf(0, start) + 1
      if (start === 0) return ''
    }
    const end = bytes.indexOf(0, start)
    return end < 0 ? '' : bytes.toString('utf8', start, end)
  }
}
