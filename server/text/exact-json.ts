/** Rewrites JSON text compactly with every number spelled as it was sent, for numbers that a double cannot hold. */

// TypeScript's library does not know these yet; Bun 1.4.5 has both.
const rawJson = (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON

/** The value of `text` as compact JSON: like `JSON.stringify(JSON.parse(text))`, but no number changes. */
export function exactJson(text: string): string {
  return JSON.stringify(JSON.parse(text, keepSpelling))
}

function keepSpelling(this: unknown, _name: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? rawJson(context.source) : value
}

/** The value of `text` in which numbers keep their spelling for `JSON.stringify`; they are no JavaScript numbers. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, keepSpelling)
}
