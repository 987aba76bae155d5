/** Why an identity provider refused or was refused, in its own words, for the sign-in page and the log. */

const reasonCharsMax = 300

/**
 * One line of at most 300 characters. Names of classes are left out, because they say nothing to an operator.
 *
 * Errors of the protocol have `error` and `error_description`; a comparison has what was expected in its
 * cause.
 */
export function providerReason(error: unknown): string {
  if (!(error instanceof Error)) return clean(String(error))
  const { error: code, error_description: description } = error as Error & { [name: string]: unknown }
  if (typeof code === 'string')
    return clean(typeof description === 'string' ? `${code}: ${description}` : code)
  const comparison = comparisonIn(error)
  const causes = causesOf(error).map(({ message }) => message)
  const sentences = [...new Set([error.message, ...causes])]
  return clean(comparison === null ? sentences.join(': ') : `${sentences.join(': ')} (${comparison})`)
}

export function hasProviderCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'error' in error && error.error === code
}

function causesOf(error: Error): Error[] {
  const causes: Error[] = []
  for (let cause = error.cause; cause instanceof Error && causes.length < 5; cause = cause.cause)
    causes.push(cause)
  return causes
}

interface Comparison {
  expected?: unknown
  header?: { alg?: unknown }
  attribute?: string
  claim?: string
  body?: { [name: string]: unknown }
  claims?: { [name: string]: unknown }
  parameters?: URLSearchParams
}

/** Of algorithms, issuers and audiences only: no other value of an answer may show. */
function comparisonIn(error: Error): string | null {
  for (const { cause } of [error, ...causesOf(error)]) {
    if (typeof cause !== 'object' || cause === null || !('expected' in cause)) continue
    const { expected, header, attribute, claim, body, claims, parameters } = cause as Comparison
    if (header?.alg !== undefined)
      return `expected ${shown(expected)}, the provider says ${shown(header.alg)}`
    const name = attribute ?? claim ?? (parameters instanceof URLSearchParams ? 'iss' : '')
    if (!['issuer', 'iss', 'aud'].includes(name)) continue
    const actual = body?.[name] ?? claims?.[name] ?? parameters?.get(name)
    return `expected ${shown(expected)}, the provider says ${shown(actual)}`
  }
  return null
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
}

/** One line without characters that change how text is shown. */
function clean(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').slice(0, reasonCharsMax)
}
