/**
 * Verifies a signature that a server saw and reported (`observe-signature.ts`), without the request that it signs
 * (contract §17).
 */
import { webCrypto } from '../platform/web-crypto.ts'
import type { SignatureProblem } from './judge.ts'
import { observedBaseCharsMax, type ObservedSignature } from './observe-signature.ts'
import {
  agentOf,
  keyOf,
  nonceCharsMax,
  Refusal,
  secondsOf,
  skewSeconds,
  tag,
  textOf,
  validSecondsMax,
} from './signature.ts'
import { type Component, componentsOf, targetOf } from './signature-base.ts'
import type { Keyring } from './signature-keys.ts'
import { type InnerList, isInnerList, parseDictionary, serializeParameters } from './structured-fields.ts'

export interface ObservedOptions {
  keyring: Keyring
  /** The hosts of the site, in lower case, with their ports unless those are the default. */
  hosts: readonly string[]
  /** When the report arrived. */
  arrivalMs: number
}

/** `use` is the same text for every report of the same signature, until `untilMs`. */
export type VerifiedSignature =
  | { state: 'valid'; operator: string; keyId: string; use: string; untilMs: number }
  | { state: 'invalid'; reason: SignatureProblem; keyId: string | null }

/** Reports may be late: an appliance may be away for hours while its senders wait. */
const lateSecondsMax = 86_400

/** Verifies that an operator's key signed the base, for a host of the site and for this time. Never throws. */
export async function verifyObserved(
  observed: ObservedSignature,
  options: ObservedOptions,
): Promise<VerifiedSignature> {
  const refused = (reason: SignatureProblem): VerifiedSignature => {
    const isKnown = options.keyring.byId.has(observed.keyId)
    return { state: 'invalid', reason, keyId: isKnown ? observed.keyId : null }
  }
  try {
    const base = parseBase(observed.base)
    if (base === null || textOf(base.covered.parameters.get('tag')) !== tag) return refused('invalid')
    const { covered, values } = base
    if (textOf(covered.parameters.get('keyid')) !== observed.keyId) return refused('invalid')
    const times = timesOf(covered)
    if (times === null) return refused('invalid')
    const isCurrent =
      times.createdMs <= options.arrivalMs + skewSeconds * 1_000 &&
      times.expiresMs > options.arrivalMs - lateSecondsMax * 1_000
    if (!isCurrent) return refused('expired')
    // A late report is of a time at which its signature was valid.
    const signedMs = Math.min(options.arrivalMs, times.expiresMs - 1)
    const knownKey = keyOf(covered, agentOf(agentHeader(values), componentsIn(values)), signedMs, options)
    if (!options.hosts.includes(authorityOf(values) ?? '')) return refused('wrong-host')
    const signature = Uint8Array.from(atob(observed.signature), (character) => character.charCodeAt(0))
    const subtle = await webCrypto()
    const text = new TextEncoder().encode(observed.base)
    if (!(await subtle.verify('Ed25519', knownKey.key, signature, text))) return refused('invalid')
    const { operator, keyId } = knownKey
    const untilMs = times.expiresMs + lateSecondsMax * 1_000
    return { state: 'valid', operator, keyId, use: useOf(covered, keyId, observed.base), untilMs }
  } catch (error) {
    return refused(error instanceof Refusal ? problemOf(error) : 'invalid')
  }
}

function problemOf({ code }: Refusal): SignatureProblem {
  if (code === 'unknown_key' || code === 'ambiguous_key' || code === 'test_key') return 'unknown-key'
  return code === 'key_not_valid' ? 'expired' : 'invalid'
}

interface CoveredValue {
  component: Component
  value: string
}

interface ParsedBase {
  covered: InnerList
  values: CoveredValue[]
}

const parametersStart = '"@signature-params": '

/** Null unless the lines are those of the components that the last line covers, in its order. */
function parseBase(base: string): ParsedBase | null {
  if (base.length > observedBaseCharsMax) return null
  const lines = base.split('\n')
  const last = lines.pop() ?? ''
  if (!last.startsWith(parametersStart)) return null
  const covered = parseDictionary(`signed=${last.slice(parametersStart.length)}`).get('signed')
  if (covered === undefined || !isInnerList(covered)) return null
  const components = componentsOf(covered)
  if (components.length !== lines.length) return null
  const values: CoveredValue[] = []
  for (const [index, component] of components.entries()) {
    const start = `"${component.name}"${serializeParameters(component.parameters)}: `
    const line = lines[index] ?? ''
    if (!line.startsWith(start)) return null
    values.push({ component, value: line.slice(start.length) })
  }
  return { covered, values }
}

const componentsIn = (values: readonly CoveredValue[]): Component[] =>
  values.map(({ component }) => component)

/** The Signature-Agent header as far as it was signed. */
function agentHeader(values: readonly CoveredValue[]): [string, string][] {
  const members = values
    .filter(({ component }) => component.name === 'signature-agent')
    .map(({ component, value }) => {
      const key = textOf(component.parameters.get('key'))
      return key === undefined ? value : `${key}=${value}`
    })
  return members.length === 0 ? [] : [['signature-agent', members.join(', ')]]
}

/** The host that was signed, with its port unless that is the default; null when none was. */
function authorityOf(values: readonly CoveredValue[]): string | null {
  for (const { component, value } of values) {
    if (component.parameters.size > 0) continue
    if (component.name === '@authority') return value.toLowerCase()
    if (component.name === '@target-uri') return targetOf({ url: value }).authority
  }
  return null
}

/** Null unless both times are there and at most a day apart. */
function timesOf({ parameters }: InnerList): { createdMs: number; expiresMs: number } | null {
  const created = secondsOf(parameters.get('created'))
  const expires = secondsOf(parameters.get('expires'))
  if (created === null || expires === null) return null
  if (expires <= created || expires - created > validSecondsMax) return null
  return { createdMs: created * 1_000, expiresMs: expires * 1_000 }
}

function useOf({ parameters }: InnerList, keyId: string, base: string): string {
  const nonce = textOf(parameters.get('nonce')) ?? ''
  return nonce === '' || nonce.length > nonceCharsMax ? `base ${base}` : `nonce ${keyId} ${nonce}`
}
