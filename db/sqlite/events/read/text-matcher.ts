/** Tells whether any text inside a JSON value holds a given part, whatever the case. */

/**
 * Both sides are compared in upper case: unlike lower case it does not depend on a letter's neighbours (the Greek
 * final sigma), so a part of a text stays a part of it.
 */
export function textMatcher(part: string): (json: string) => boolean {
  const wanted = part.toUpperCase()
  const escaped = JSON.stringify(part).slice(1, -1).toUpperCase()
  return (json) => {
    // Cheap and never wrong when it says no; names of members and numbers may still be what it found.
    if (!json.toUpperCase().includes(escaped)) return false
    return holds(JSON.parse(json), wanted)
  }
}

function holds(value: unknown, wanted: string): boolean {
  if (typeof value === 'string') return value.toUpperCase().includes(wanted)
  if (typeof value !== 'object' || value === null) return false
  for (const inner of Object.values(value)) if (holds(inner, wanted)) return true
  return false
}
