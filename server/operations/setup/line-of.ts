/** Finds the line of a TOML file on which a member stands, for messages; the parser itself tells no places. */

/**
 * The line, from 1, of a path such as `organizations[1].keys[0].hash`: its own, or that of the nearest table around it.
 * Null when the tables are written in another way than under `[[headers]]`.
 */
export function lineOf(text: string, path: string): number | null {
  const wanted = path.split('.')
  const seen = new Map<string, number>() // how many tables of a name there were, by their whole path
  let here: string[] = []
  let nearest: number | null = null
  let depth = 0
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[\s*([\w.-]+)\s*\]\]/.exec(line)?.[1]
    if (header !== undefined) {
      here = tablePath(header.split('.'), seen)
      if (isPrefix(here, wanted) && here.length > depth) {
        nearest = index + 1
        depth = here.length
      }
      continue
    }
    const name = /^\s*"?([\w-]+)"?\s*=/.exec(line)?.[1]
    if (name !== undefined && [...here, name].join('.') === path) return index + 1
  }
  return nearest
}

/** Each name of a header with the number of its newest table; the last one begins another. */
function tablePath(names: string[], seen: Map<string, number>): string[] {
  const path: string[] = []
  for (const [depth, name] of names.entries()) {
    const key = [...path, name].join('.')
    const count = (seen.get(key) ?? 0) + (depth === names.length - 1 ? 1 : 0)
    seen.set(key, count)
    path.push(`${name}[${Math.max(0, count - 1)}]`)
  }
  return path
}

function isPrefix(part: string[], whole: string[]): boolean {
  return part.length <= whole.length && part.every((name, index) => name === whole[index])
}

/** The first line that no longer parses together with those before it: at it, or in what begins there. */
export function brokenLine(text: string, parses: (text: string) => boolean): number {
  const lines = text.split('\n')
  let last = 0 // lines that parse together
  for (let count = 1; count <= lines.length; count++)
    if (parses(`${lines.slice(0, count).join('\n')}\n`)) last = count
  return Math.min(last + 1, lines.length)
}
