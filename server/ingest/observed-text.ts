/**
 * The text of `observed` in a request: what the sender saw of the requests by agents (contract §17). It holds
 * addresses, so nothing of it is stored.
 */
import { limits } from '../limits.ts'
import { skipSpace, skipValue } from '../text/json-scan.ts'

/** `{ id: { address, signature: { base, signature, keyId } } }` */
export const observedDepthMax = 3

/** Opening brackets of `observed` in a body that is scanned before it is parsed: two of each event, and its own. */
export const observedOpenersMax = 2 * limits.eventsPerRequestMax + 1

/** The name of a field, which may contain escapes; '' for a text that is no string. */
export function fieldName(text: string): string {
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return String(JSON.parse(text))
  } catch {
    return ''
  }
}

/** The name in any spelling of JSON, and in texts that are almost JSON. */
const observedName = new RegExp(
  [...'observed'].map((letter) => `(?:${letter}|\\\\u00${letter.charCodeAt(0).toString(16)})`).join(''),
  'gi',
)

/** The start of a request for a sample, without the values of its fields named `observed`. */
export function withoutObserved(text: string): string {
  let result = ''
  let start = 0
  for (const { index, 0: name } of text.matchAll(observedName)) {
    if (index < start) continue // inside a value that was left out
    const quoted = index + name.length
    const colon = skipSpace(text, /["'`]/.test(text[quoted] ?? '') ? quoted + 1 : quoted)
    if (text[colon] !== ':' && text[colon] !== '=') continue
    const valueStart = skipSpace(text, colon + 1)
    const valueEnd = skipValue(text, valueStart, { depth: 0, isExact: true })
    result += `${text.slice(start, valueStart)}null`
    // The value does not end here: everything else may be of it.
    if (valueEnd < 0 || !'{["'.includes(text[valueStart] ?? '')) return result
    start = valueEnd
  }
  return result + text.slice(start)
}
