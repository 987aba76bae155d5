/** `verifySignature`: verifies that an operator's key signed a request (RFC 9421 with the rules of Web Bot Auth). */
import { nowMs as now } from '../platform/clock.ts'
import { webCrypto } from '../platform/web-crypto.ts'
import {
  type Component,
  ComponentError,
  componentsOf,
  fieldLines,
  type MessageFields,
  signatureBase,
  targetOf,
} from './signature-base.ts'
import { type Keyring, type KnownKey, type NonceMemory, originOf } from './signature-keys.ts'
import {
  type BareItem,
  type Dictionary,
  FieldError,
  type InnerList,
  isInnerList,
  parseDictionary,
  parseItem,
} from './structured-fields.ts'

export {
  createKeyring,
  createNonceMemory,
  type KeyDirectory,
  type Keyring,
  type NonceMemory,
} from './signature-keys.ts'

/** A request as its client sent it. Behind a proxy, `url` has the host that the client requested. */
export interface SignedRequest {
  method: string
  url: string
  headers: MessageFields
}

export interface SignatureOptions {
  /** The keys of known operators: `createKeyring(directories)`. */
  keyring: Keyring
  /**
   * The hosts of this site, each with its port unless that is the default. A signature for any other host is then
   * refused. Without it, `url` must not come from a `Host` header that the client chose freely.
   */
  hosts?: readonly string[] | undefined
  /** Accepts each nonce once, and only signatures that have one: `createNonceMemory()`. */
  nonces?: NonceMemory | undefined
  /** Accepts the example keys of RFC 9421, whose private keys everybody knows. For tests. */
  allowTestKeys?: boolean | undefined
  /** Milliseconds since 1970, for tests. */
  nowMs?: (() => number) | undefined
}

/** `none`: the request does not claim to be signed by an agent. Signatures for other purposes are ignored. */
export type SignatureResult =
  | { state: 'valid'; operator: string; keyId: string }
  | { state: 'invalid'; keyId?: string; reason: SignatureReason }
  | { state: 'none' }

/** `unknown_key` says that the signature cannot be checked; every other code, that it proves nothing. */
export interface SignatureReason {
  code: SignatureFault
  /** A sentence for people, at most 300 characters. It may quote the request. */
  text: string
}

const sentences = {
  too_large: 'The signature headers or the URL are too long.',
  malformed: 'The signature headers cannot be parsed',
  missing_signature: 'Signature-Input announces a signature that Signature does not contain.',
  host_not_covered: 'The signature covers neither @authority nor @target-uri.',
  agent_not_covered: 'The signature does not cover the Signature-Agent header of the request.',
  ambiguous_agent: 'The signature covers several addresses in Signature-Agent.',
  wrong_agent: 'Signature-Agent is not the https address where the operator publishes this key.',
  no_time: 'The signature lacks a created or expires time.',
  created_in_future: 'The signature was created in the future.',
  expired: 'The signature has expired.',
  valid_too_long: 'The signature is valid for more than 24 hours.',
  wrong_algorithm: 'The signature does not use Ed25519.',
  unknown_key: 'No known operator has the key of this signature.',
  ambiguous_key: 'Several operators have the key of this signature.',
  key_not_valid: 'The key of this signature is not valid at this time.',
  test_key: 'The signature uses an example key, whose private key is public.',
  other_host: 'The request is for a host that is not one of this site.',
  unsignable: 'A covered component cannot be verified',
  wrong_signature: 'The signature does not match the request.',
  no_nonce: 'The signature has no nonce, so a replay cannot be recognized.',
  replayed: 'The nonce of the signature was used before.',
  nonces_full: 'No more nonces can be remembered, so a replay cannot be recognized.',
}

export type SignatureFault = keyof typeof sentences

/** Why a signature is not accepted; becomes a result, never reaches the caller. */
export class Refusal extends Error {
  readonly code: SignatureFault
  constructor(code: SignatureFault, detail?: string) {
    super(detail === undefined ? sentences[code] : `${sentences[code]}: ${detail}.`)
    this.code = code
  }
}

const headerCharsMax = 8_192
const urlCharsMax = 16_384
export const nonceCharsMax = 256
const reasonCharsMax = 300
/** Signatures for `web-bot-auth` in one request. A proxy may add one to the agent's. */
const signaturesMax = 4
export const skewSeconds = 60
export const validSecondsMax = 86_400
export const tag = 'web-bot-auth'

/** The thumbprint of `test-key-ed25519` of RFC 9421. */
const testKeyIds = ['poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U']

/** Never throws because of the request. Of several signatures, one must be valid. */
export async function verifySignature(
  request: SignedRequest,
  options: SignatureOptions,
): Promise<SignatureResult> {
  let first: SignatureResult | null = null
  try {
    for (const announced of announcedIn(request.headers)) {
      const result = await verifyOne(request, announced, options)
      if (result.state === 'valid') return result
      first ??= result
    }
  } catch (error) {
    return resultOf(error)
  }
  return first ?? { state: 'none' }
}

interface Announced {
  label: string
  covered: InnerList
}

/** The signatures that Signature-Input announces with the tag of Web Bot Auth. */
function announcedIn(headers: MessageFields): Announced[] {
  const text = headerOf(headers, 'signature-input')
  const announced: Announced[] = []
  for (const [label, covered] of parseDictionary(text))
    if (isInnerList(covered) && covered.parameters.get('tag')?.value === tag)
      announced.push({ label, covered })
  if (announced.length > signaturesMax) throw new Refusal('too_large')
  return announced
}

/** All lines of the header as one, or an empty text. */
function headerOf(headers: MessageFields, name: string): string {
  const text = fieldLines(headers, name).join(', ')
  if (text.length > headerCharsMax) throw new Refusal('too_large')
  return text
}

async function verifyOne(
  request: SignedRequest,
  { label, covered }: Announced,
  options: SignatureOptions,
): Promise<SignatureResult> {
  try {
    if (request.url.length > urlCharsMax) throw new Refusal('too_large')
    const nowMs = (options.nowMs ?? now)()
    const components = componentsOf(covered)
    requireHost(request, components, options.hosts)
    const agent = agentOf(request.headers, components)
    const expiresMs = validUntil(covered, nowMs)
    const knownKey = keyOf(covered, agent, nowMs, options)
    const { keyId, operator } = knownKey
    const signature = signatureOf(parseDictionary(headerOf(request.headers, 'signature')), label)
    const { method, url, headers } = request
    const base = new TextEncoder().encode(signatureBase({ method, url, headers }, covered))
    const subtle = await webCrypto()
    if (!(await subtle.verify('Ed25519', knownKey.key, signature, base))) throw new Refusal('wrong_signature')
    if (options.nonces !== undefined) await useNonce(covered, keyId, expiresMs, nowMs, options.nonces)
    return { state: 'valid', operator, keyId }
  } catch (error) {
    const keyId = textOf(covered.parameters.get('keyid'))?.slice(0, nonceCharsMax)
    const result = resultOf(error)
    return result.state === 'invalid' && keyId !== undefined ? { ...result, keyId } : result
  }
}

/** Anything but a fault of the request is the host's, such as a runtime without Ed25519, and is thrown. */
function resultOf(error: unknown): SignatureResult {
  const refusal =
    error instanceof FieldError
      ? new Refusal('malformed', error.message)
      : error instanceof ComponentError
        ? new Refusal('unsignable', error.message)
        : error
  if (!(refusal instanceof Refusal)) throw error
  return { state: 'invalid', reason: { code: refusal.code, text: refusal.message.slice(0, reasonCharsMax) } }
}

function requireHost(
  request: SignedRequest,
  components: Component[],
  hosts: readonly string[] | undefined,
): void {
  const coversHost = components.some(
    ({ name, parameters }) => (name === '@authority' || name === '@target-uri') && parameters.size === 0,
  )
  if (!coversHost) throw new Refusal('host_not_covered')
  if (hosts !== undefined && !hosts.includes(targetOf(request).authority)) throw new Refusal('other_host')
}

/** The origin in the Signature-Agent header, which must be covered; null without the header. */
export function agentOf(headers: MessageFields, components: Component[]): string | null {
  const text = headerOf(headers, 'signature-agent')
  const coverage = components.filter(({ name }) => name === 'signature-agent')
  if (text === '') return null
  const isPlain = coverage.some(({ parameters }) => parameters.size === 0)
  let url: BareItem | undefined
  if (text.startsWith('"')) {
    // The form of the drafts before 2026: one string.
    if (!isPlain) throw new Refusal('agent_not_covered')
    url = parseItem(text).value
  } else {
    const members = parseDictionary(text)
    const keys = coverage.flatMap(({ parameters }) =>
      parameters.size === 1 ? (textOf(parameters.get('key')) ?? []) : [],
    )
    const covered = isPlain ? [...members.keys()] : keys.filter((key) => members.has(key))
    if (covered.length > 1) throw new Refusal('ambiguous_agent')
    const member = members.get(covered[0] ?? '')
    if (member === undefined) throw new Refusal('agent_not_covered')
    url = isInnerList(member) ? undefined : member.value
  }
  const origin = originOf(textOf(url) ?? '')
  if (origin === null) throw new Refusal('wrong_agent')
  return origin
}

/** When the signature expires. Throws unless it is valid now and was never valid for longer than a day. */
function validUntil({ parameters }: InnerList, nowMs: number): number {
  const created = secondsOf(parameters.get('created'))
  const expires = secondsOf(parameters.get('expires'))
  if (created === null || expires === null) throw new Refusal('no_time')
  if (created * 1_000 > nowMs + skewSeconds * 1_000) throw new Refusal('created_in_future')
  if (expires * 1_000 <= nowMs) throw new Refusal('expired')
  if (expires - created > validSecondsMax) throw new Refusal('valid_too_long')
  return expires * 1_000
}

export function secondsOf(item: BareItem | undefined): number | null {
  return item?.type === 'integer' ? item.value : null
}

export function textOf(item: BareItem | undefined): string | undefined {
  return item?.type === 'string' ? item.value : undefined
}

/** A key may be in several directories: the one that the agent names decides whose signature it is. */
export function keyOf(
  { parameters }: InnerList,
  agent: string | null,
  nowMs: number,
  { keyring, allowTestKeys = false }: Pick<SignatureOptions, 'keyring' | 'allowTestKeys'>,
): KnownKey {
  const alg = parameters.get('alg')
  if (alg !== undefined && textOf(alg) !== 'ed25519') throw new Refusal('wrong_algorithm')
  const keyId = textOf(parameters.get('keyid')) ?? ''
  if (testKeyIds.includes(keyId) && !allowTestKeys) throw new Refusal('test_key')
  const candidates = keyring.byId.get(keyId)
  if (candidates === undefined) throw new Refusal('unknown_key')
  const agentKeys = candidates.filter(({ origin }) => origin !== null && origin === agent)
  const possible =
    agentKeys.length > 0 ? agentKeys : candidates.filter(({ origin }) => origin === null || agent === null)
  const [key] = possible
  if (key === undefined) throw new Refusal('wrong_agent')
  if (possible.some(({ operator }) => operator !== key.operator)) throw new Refusal('ambiguous_key')
  if (nowMs < key.notBeforeMs || nowMs >= key.expiresMs) throw new Refusal('key_not_valid')
  return key
}

function signatureOf(signatures: Dictionary, label: string): Uint8Array<ArrayBuffer> {
  const member = signatures.get(label)
  if (member === undefined || isInnerList(member) || member.value.type !== 'bytes')
    throw new Refusal('missing_signature')
  if (member.value.value.length !== 64) throw new Refusal('wrong_signature')
  return member.value.value
}

/** Only after the signature is verified: otherwise anybody could fill the memory or use up a nonce. */
async function useNonce(
  { parameters }: InnerList,
  keyId: string,
  expiresMs: number,
  nowMs: number,
  nonces: NonceMemory,
): Promise<void> {
  const nonce = textOf(parameters.get('nonce')) ?? ''
  if (nonce === '' || nonce.length > nonceCharsMax) throw new Refusal('no_nonce')
  const use = await nonces.use(`${keyId} ${nonce}`, expiresMs, nowMs)
  if (use === 'seen') throw new Refusal('replayed')
  if (use === 'full') throw new Refusal('nonces_full')
}
