/** What a key may be given: a label, scopes for secret keys, sites and a proxy for ingest keys, an end. */
import type { ApiKey, KeyKind, KeyTerms } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import { wrongField } from '../../http/body-fields.ts'
import type { Scope } from '../../http/guard.ts'
import { limits } from '../../limits.ts'

export const scopes: readonly Scope[] = [
  'traces:read',
  'metrics:read',
  'audit:read',
  'webhooks:read',
  'webhooks:write',
]

export function readLabel(text: string): string {
  const label = text.trim()
  const chars = [...label].length
  if (chars >= 1 && chars <= limits.labelCharsMax && !/[\u0000-\u001f\u007f]/.test(label)) return label
  throw wrongField('label', `Give the key a label of 1 to ${limits.labelCharsMax} characters.`)
}

/** Throws 400 `invalid_body` for what does not go with the kind of key, or is not there to be given. */
export function checkTerms(kind: KeyKind, terms: Omit<KeyTerms, 'label'>, now: number): void {
  const { scopes: given, siteIds, behindProxy, expiresAtMs } = terms
  if (given.length > 0 && kind !== 'secret') throw wrongField('scopes', `Only secret keys have scopes.`)
  const strange = given.find((scope) => !scopes.some((known) => known === scope))
  if (strange !== undefined) throw wrongField('scopes', `Scopes are ${scopes.join(' ')}.`)
  if (siteIds.length > 0 && kind !== 'ingest')
    throw wrongField('siteIds', `Only ingest keys are limited to sites.`)
  if (
    siteIds.length > limits.sitesPerOrgMax ||
    siteIds.some((id) => id === '' || [...id].length > limits.idCharsMax)
  )
    throw wrongField('siteIds', `A site id has 1 to ${limits.idCharsMax} characters.`)
  if (behindProxy && kind !== 'ingest') throw wrongField('behindProxy', 'This is for ingest keys only.')
  if (expiresAtMs !== null && expiresAtMs <= now)
    throw wrongField('expiresAt', 'The end must be in the future.')
}

/** As an audit row tells it. */
export function termsView({ label, scopes, siteIds, behindProxy, expiresAtMs }: KeyTerms | ApiKey) {
  const expiresAt = expiresAtMs === null ? null : isoTime(expiresAtMs)
  return { label, scopes, siteIds, behindProxy, expiresAt }
}
