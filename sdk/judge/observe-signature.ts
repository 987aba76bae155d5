/** What the middleware and the relay report of a signed request, for the appliance to verify (contract §17). */
import { ComponentError, fieldLines, type HttpMessage, signatureBase } from './signature-base.ts'
import { FieldError, isInnerList, parseDictionary } from './structured-fields.ts'

export interface ObservedSignature {
  base: string // the text that was signed
  signature: string // base64
  keyId: string
}

export const observedBaseCharsMax = 8_192
const headerCharsMax = 8_192

/** The first signature of an agent in a request; null without one that could be verified. Never throws. */
export function observeSignature(request: HttpMessage): ObservedSignature | null {
  try {
    const input = fieldLines(request.headers, 'signature-input').join(', ')
    const values = fieldLines(request.headers, 'signature').join(', ')
    if (input === '' || values === '' || Math.max(input.length, values.length) > headerCharsMax) return null
    for (const [label, covered] of parseDictionary(input)) {
      if (!isInnerList(covered) || covered.parameters.get('tag')?.value !== 'web-bot-auth') continue
      const value = parseDictionary(values).get(label)
      const keyId = covered.parameters.get('keyid')?.value
      if (
        value === undefined ||
        isInnerList(value) ||
        value.value.type !== 'bytes' ||
        typeof keyId !== 'string'
      )
        continue
      // Anybody could have added the header to a signed request.
      const namesAgent = fieldLines(request.headers, 'signature-agent').length > 0
      if (namesAgent && !covered.items.some(({ value: item }) => item.value === 'signature-agent')) continue
      const base = signatureBase(request, covered)
      if (base.length > observedBaseCharsMax) continue
      return { base, signature: btoa(String.fromCharCode(...value.value.value)), keyId }
    }
  } catch (error) {
    if (!(error instanceof FieldError || error instanceof ComponentError)) throw error
  }
  return null
}
