/** Undoes what servers do to characters that would end a field of a log line. */

/** How a server writes characters that would end a field. `plus`: IIS writes a space as `+`. */
export type Escapes = 'backslash' | 'double' | 'percent' | 'plus'

const special = /[\\\u0080-\u00ff]/
const control: { readonly [letter: string]: string } = {
  a: '\u0007',
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
      escaped,
      (whole, hex: string | undefined, rune: string | undefined, letter: string | undefined) => {
        if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
        if (rune !== undefined) return utf8Of(Number.parseInt(rune.slice(1), 16)) ?? whole
        return letter === undefined ? whole : (control[letter] ?? letter)
      },
    ),
  )
}

/** Go's strconv.Quote, of Traefik, writes what nobody could see as `\u00ad` or `\U000e0001`. */
const escaped = /\\(?:x([0-9A-Fa-f]{2})|(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|([^x]))/g
const runeMax = 0x10ffff

/** Encodes a code point in UTF-8; null for a number that is no code point. */
function utf8Of(rune: number): string | null {
  return rune > runeMax ? null : Buffer.from(String.fromCodePoint(rune)).toString('latin1')
}

function percentDecoded(raw: string): string {
  if (!raw.includes('%')) return raw
  return raw.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function decoded(bytes: string): string {
  return special.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes
}
