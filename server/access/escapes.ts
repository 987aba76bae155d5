/** Undoes what servers do to characters that would end a field of a log line. */

/** How a server writes characters that would end a field. `plus`: IIS writes a space as `+`. */
export type Escapes = 'backslash' | 'double' | 'percent' | 'plus'

const special = /[\\\u0080-\u00ff]/
const control: { readonly [letter: string]: string } = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
}

/** Undoes the server's escapes and decodes UTF-8; invalid bytes become U+FFFD. */
export function unescaped(raw: string, escapes: Escapes | null): string {
  if (escapes === null) return decoded(raw)
  if (escapes === 'double') return decoded(raw.includes('""') ? raw.replaceAll('""', '"') : raw)
  if (escapes === 'plus') return decoded(percentDecoded(raw.replaceAll('+', ' ')))
  // CloudFront encodes twice: a space is %2520.
  if (escapes === 'percent') return decoded(percentDecoded(percentDecoded(raw)))
  if (!special.test(raw)) return raw
  if (!raw.includes('\\')) return decoded(raw)
  return decoded(
    raw.replace(
      /\\(?:x([0-9A-Fa-f]{2})|([^x]))/g,
      (whole, hex: string | undefined, other: string | undefined) => {
        if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
        return other === undefined ? whole : (control[other] ?? other)
      },
    ),
  )
}

function percentDecoded(raw: string): string {
  if (!raw.includes('%')) return raw
  return raw.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function decoded(bytes: string): string {
  return special.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes
}
