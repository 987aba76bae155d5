/**
 * Sign-in through an identity provider with OpenID Connect: an authorization request in an encrypted cookie, then a
 * verified identity.
 */
import * as client from 'openid-client'
import { noteCall } from '../../system/outbound.ts'
import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { addressOf } from '../../http/address.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import { findAccountByEmail } from './email.ts'
import { homeOf } from './sign-in.ts'
import { hasProviderCode, providerReason } from './provider-reason.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from './sign-ins.ts'
import type { Clock } from '../../clock.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { Log } from '../../log.ts'

interface ProviderRoutesServices {
  store: Store
  clock: Clock
  log: Log
  publicUrl: string | null
  basePath: string
  signIns: SignIns
  briefCipher: Cipher
  provider: Provider | null
}

/** One for each authorization request, so that two tabs and stray callbacks do not end each other's. */
const cookiePrefix = 'sightglass_errand_'
const requestsMax = 5 // of one browser at once
const stateForm = /^[A-Za-z0-9_-]{43}$/

/** The reason of a refusal, for the page that follows. Not in its address, which anyone could forge. */
const reasonCookie = 'sightglass_refusal'
const reasonSeconds = 60

const purpose = 'oidc-errand'
const requestMs = 10 * 60_000

/** Why a sign-in failed; the sign-in page shows it. */
type Refusal = 'unreachable' | 'failed' | 'expired' | 'no_account'

export function providerRoutes(services: ProviderRoutesServices) {
  const { basePath } = services
  const redirectUrl = (request: Request) => `${addressOf(request, services)}/api/oidc/callback`
  const requestCookie = requestCookieBelow(basePath)
  const refuse = (request: Request, refusal: Refusal, reason = '') => {
    const state = stateOf(request)
    const ended = state === null ? [] : [requestCookie(request, state, '', 0)]
    const cookies = reason === '' ? ended : [...ended, reasonCookieOf(basePath, reason)]
    return redirect(`${basePath}/sign-in?refused=${refusal}`, cookies)
  }
  return new Elysia()
    .get('/api/oidc/start', async ({ request }) => {
      const { provider, briefCipher, clock, log } = services
      readQuery(request, {})
      if (provider === null) throw noProvider()
      try {
        const { url, authorization } = await provider.begin(redirectUrl(request))
        const encrypted = briefCipher.encrypt(purpose, { ...authorization, untilMs: clock.now() + requestMs })
        const open = openStates(request)
        const staleStates = open.length < requestsMax ? [] : open
        const ended = staleStates.map((state) => requestCookie(request, state, '', 0))
        return redirect(url, [...ended, requestCookie(request, authorization.state, encrypted, requestMs)])
      } catch (error) {
        const reason = providerReason(error)
        log.warn('provider_failed', { at: 'start', message: reason })
        return refuse(request, 'unreachable', reason)
      }
    })
    .get('/api/oidc/callback', async ({ request }) => {
      if (services.provider === null) throw noProvider()
      const authorization = authorizationOf(services, request)
      if (authorization === null) {
        services.log.warn('provider_failed', { at: 'callback', message: 'no sign-in began with this state' })
        return refuse(request, 'expired')
      }
      const query = new URL(request.url).search
      try {
        const proven = await services.provider.finish(new URL(redirectUrl(request) + query), authorization)
        const cookie = await enter(services, request, proven)
        if (cookie === null) return refuse(request, 'no_account')
        return redirect(`${basePath}/`, [cookie, requestCookie(request, authorization.state, '', 0)])
      } catch (error) {
        const reason = providerReason(error)
        services.log.warn('provider_failed', { at: 'callback', message: reason })
        return refuse(request, 'failed', reason)
      }
    })
}

/**
 * Only existing accounts can sign in: by the subject once it is known, the first time by the verified address. Returns
 * the Set-Cookie header, or null without an account.
 */
async function enter(
  services: ProviderRoutesServices,
  request: Request,
  proven: ProvenIdentity,
): Promise<string | null> {
  const { issuer, subject, email } = proven
  const linkedAccount = await services.store.signIns.findExternal({ issuer, subject })
  const account = linkedAccount ?? (email === null ? null : await findAccountByEmail(services.store, email))
  const orgId = account && (await homeOf(services, account.id))
  if (!account || !orgId) return null
  const member = { accountId: account.id, orgId, email: account.email }
  const { cookie } = await services.signIns.begin(request, member, {
    by: 'provider',
    external: { issuer, subject },
  })
  return cookie
}

function authorizationOf(
  { briefCipher, clock }: ProviderRoutesServices,
  request: Request,
): AuthorizationRequest | null {
  const state = stateOf(request)
  const encrypted = state === null ? undefined : cookiesOf(request).get(cookiePrefix + state)
  const authorization =
    encrypted === undefined
      ? null
      : (briefCipher.decrypt(purpose, encrypted) as (AuthorizationRequest & { untilMs: number }) | null)
  return authorization !== null && authorization.untilMs > clock.now() ? authorization : null
}

/** The state that a callback names, if it can be one of ours. */
function stateOf(request: Request): string | null {
  const state = new URL(request.url).searchParams.get('state')
  return state !== null && stateForm.test(state) ? state : null
}

function openStates(request: Request): string[] {
  return [...cookiesOf(request).keys()]
    .filter((name) => name.startsWith(cookiePrefix))
    .map((name) => name.slice(cookiePrefix.length))
    .filter((state) => stateForm.test(state))
}

function cookiesOf(request: Request): Map<string, string> {
  const parts = (request.headers.get('cookie') ?? '').split(';').map((part) => part.trim().split('='))
  return new Map(parts.map(([name = '', value = '']) => [name, value]))
}

/** The page reads it, so it is not HttpOnly. */
function reasonCookieOf(basePath: string, reason: string): string {
  const flags = `SameSite=Lax; Max-Age=${reasonSeconds}`
  return `${reasonCookie}=${encodeURIComponent(reason)}; Path=${basePath}/sign-in; ${flags}`
}

function requestCookieBelow(basePath: string) {
  return (request: Request, state: string, value: string, maxAgeMs: number): string => {
    const flags = `HttpOnly; SameSite=Lax; Max-Age=${maxAgeMs / 1000}`
    const secure = contextOf(request).sender().secure ? '; Secure' : ''
    return `${cookiePrefix}${state}=${value}; Path=${basePath}/api/oidc; ${flags}${secure}`
  }
}

function redirect(location: string, cookies: string[]): Response {
  const response = new Response(null, { status: 303, headers: { location } })
  for (const cookie of cookies) response.headers.append('set-cookie', cookie)
  return response
}

function noProvider(): AppError {
  return new AppError('not_found', 'This appliance has no identity provider.', {
    hint: 'Start it with --oidc-issuer and --oidc-client-id.',
  })
}

/** The secrets of one authorization request, stored encrypted in a cookie of the browser. */
interface AuthorizationRequest {
  state: string
  nonce: string
  verifier: string
}

interface ProvenIdentity {
  issuer: string
  subject: string
  email: string | null // only one that the provider has verified
}

export interface Provider {
  name: string
  begin(redirectUrl: string): Promise<{ url: string; authorization: AuthorizationRequest }>
  /** The identity behind the callback `url`; rejects when anything does not match the request. */
  finish(url: URL, authorization: AuthorizationRequest): Promise<ProvenIdentity>
}

/** Contacts the provider at the first sign-in only, so the appliance starts while the provider is down. */
export function makeProvider({ issuer, clientId, clientSecret, name }: OidcConfig): Provider {
  const authentication = clientAuthentication(clientSecret)
  let discovery: Promise<client.Configuration> | null = null
  const discover = (): Promise<client.Configuration> => {
    // Plain HTTP is for a provider on this machine; the configuration allows no other.
    const execute = issuer.startsWith('http:') ? [client.allowInsecureRequests] : []
    discovery ??= client.discovery(
      new URL(issuer),
      clientId,
      clientSecret ?? undefined,
      authentication.authenticate,
      {
        execute,
        timeout: 10,
        [client.customFetch]: (url, init) => {
          const { hostname, port, protocol } = new URL(url)
          const portNumber = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
          noteCall({ what: 'sign-in provider', host: hostname, address: null, port: portNumber })
          return fetch(url, init as RequestInit)
        },
      },
    )
    discovery.catch(() => (discovery = null))
    return discovery
  }
  return {
    name,
    async begin(redirectUrl) {
      const verifier = client.randomPKCECodeVerifier()
      const authorization = { state: client.randomState(), nonce: client.randomNonce(), verifier }
      const config = await discover()
      authentication.requireMethod(config)
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUrl,
        scope: 'openid email',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: authorization.state,
        nonce: authorization.nonce,
      })
      return { url: url.href, authorization }
    },
    async finish(url, { state, nonce, verifier }) {
      const config = await discover()
      const checks = {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      }
      const tokens = await authentication.tryEach(config, () =>
        client.authorizationCodeGrant(config, url, checks),
      )
      const claims = tokens.claims()
      if (claims === undefined) throw new Error('the provider sent no identity token')
      const profile = await profileOf(config, tokens.access_token, claims)
      const isVerified = profile['email_verified'] === true || profile['email_verified'] === 'true'
      const email = isVerified && typeof profile['email'] === 'string' ? profile['email'] : null
      return { issuer: claims.iss, subject: claims.sub, email }
    },
  }
}

/** The identity token, and what only the userinfo of the provider says. */
async function profileOf(
  config: client.Configuration,
  accessToken: string,
  claims: client.IDToken,
): Promise<{ [claim: string]: unknown }> {
  const isComplete = claims['email'] !== undefined && claims['email_verified'] !== undefined
  if (isComplete || config.serverMetadata().userinfo_endpoint === undefined) return claims
  return { ...claims, ...(await client.fetchUserInfo(config, accessToken, claims.sub)) }
}

type Method = 'client_secret_basic' | 'client_secret_post' | 'client_secret_jwt'

const methods: { [method in Method]: (secret: string) => client.ClientAuth } = {
  client_secret_basic: client.ClientSecretBasic,
  client_secret_post: client.ClientSecretPost,
  client_secret_jwt: client.ClientSecretJwt,
}
const methodsInOrder = Object.keys(methods) as Method[]

/**
 * How the secret reaches the provider. Its metadata says what it supports, but not what it expects of this client, so a
 * refused method is followed by the next. The provider refuses before it reads the code, which can be sent again.
 */
function clientAuthentication(secret: string | null) {
  let accepted: Method | null = null
  let current: Method = 'client_secret_basic'

  /** Without the metadata it is basic (RFC 8414, section 2), and then what most clients send. */
  function offered(config: client.Configuration): Method[] {
    const supported = config.serverMetadata().token_endpoint_auth_methods_supported
    if (supported === undefined) return ['client_secret_basic', 'client_secret_post']
    const usable = methodsInOrder.filter((method) => supported.includes(method))
    if (usable.length > 0) return usable
    throw new Error(
      `the provider authenticates clients by ${supported.join(', ') || 'nothing'} only; ` +
        `allow this client ${methodsInOrder.join(', ')} there, ` +
        'or none, with SIGHTGLASS_OIDC_CLIENT_SECRET unset, for a public client with PKCE',
    )
  }

  const authenticate: client.ClientAuth = (server, metadata, body, headers) => {
    const authentication = secret === null ? client.None() : methods[current](secret)
    return authentication(server, metadata, body, headers)
  }

  async function tryEach<T>(config: client.Configuration, send: () => Promise<T>): Promise<T> {
    if (secret === null) return send()
    const candidateMethods = [...new Set([accepted, ...offered(config)])].filter((method) => method !== null)
    for (const [index, method] of candidateMethods.entries()) {
      current = method
      try {
        const answer = await send()
        accepted = method
        return answer
      } catch (error) {
        const isRefused = hasProviderCode(error, 'invalid_client') || isChallenge(error)
        if (isRefused) accepted = null
        if (!isRefused || index === candidateMethods.length - 1) throw error
      }
    }
    throw new Error('the provider offers no method')
  }

  /** Before a person is sent to a provider that will refuse this client. */
  function requireMethod(config: client.Configuration): void {
    if (secret !== null) offered(config)
  }

  return { authenticate, requireMethod, tryEach }
}

/** A 401 without a body that says why. */
function isChallenge(error: unknown): boolean {
  return error instanceof client.WWWAuthenticateChallengeError
}

/** The options of the operator. */
export interface OidcConfig {
  issuer: string
  clientId: string
  clientSecret: string | null // null: a public client, which PKCE alone protects
  name: string // on the button
}
