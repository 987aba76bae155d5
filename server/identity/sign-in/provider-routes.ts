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
import { findAccountByEmail } from '../email.ts'
import { homeOf } from './sign-in.ts'
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

const cookieName = 'sightglass_errand'
const purpose = 'oidc-errand'
const requestMs = 10 * 60_000

/** Why a sign-in failed; the sign-in page shows it. */
type Refusal = 'unreachable' | 'failed' | 'no_account'

export function providerRoutes(services: ProviderRoutesServices) {
  const { basePath } = services
  const redirectUrl = (request: Request) => `${addressOf(request, services)}/api/oidc/callback`
  const requestCookie = requestCookieBelow(basePath)
  const refuse = (request: Request, why: Refusal) =>
    redirect(`${basePath}/sign-in?refused=${why}`, requestCookie(request, '', 0))
  return new Elysia()
    .get('/api/oidc/start', async ({ request }) => {
      const { provider, briefCipher, clock, log } = services
      readQuery(request, {})
      if (provider === null) throw noProvider()
      try {
        const { url, authorization } = await provider.begin(redirectUrl(request))
        const encrypted = briefCipher.encrypt(purpose, { ...authorization, untilMs: clock.now() + requestMs })
        return redirect(url, requestCookie(request, encrypted, requestMs))
      } catch (error) {
        log.warn('provider_failed', { at: 'start', message: String(error) })
        return refuse(request, 'unreachable')
      }
    })
    .get('/api/oidc/callback', async ({ request }) => {
      if (services.provider === null) throw noProvider()
      const authorization = authorizationOf(services, request)
      if (authorization === null) return refuse(request, 'failed')
      const query = new URL(request.url).search
      try {
        const proven = await services.provider.finish(new URL(redirectUrl(request) + query), authorization)
        const cookie = await enter(services, request, proven)
        if (cookie === null) return refuse(request, 'no_account')
        const answer = redirect(`${basePath}/`, cookie)
        answer.headers.append('set-cookie', requestCookie(request, '', 0))
        return answer
      } catch (error) {
        services.log.warn('provider_failed', { at: 'callback', message: String(error) })
        return refuse(request, 'failed')
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
  const known = await services.store.signIns.findExternal({ issuer, subject })
  const account = known ?? (email === null ? null : await findAccountByEmail(services.store, email))
  const orgId = account && (await homeOf(services, account.id))
  if (!account || !orgId) return null
  const who = { accountId: account.id, orgId, email: account.email }
  const { cookie } = await services.signIns.begin(request, who, {
    by: 'provider',
    external: { issuer, subject },
  })
  return cookie
}

function authorizationOf(
  { briefCipher, clock }: ProviderRoutesServices,
  request: Request,
): AuthorizationRequest | null {
  const cookies = (request.headers.get('cookie') ?? '').split(';').map((part) => part.trim())
  const encrypted = cookies.find((part) => part.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
  const authorization =
    encrypted === undefined
      ? null
      : (briefCipher.decrypt(purpose, encrypted) as (AuthorizationRequest & { untilMs: number }) | null)
  return authorization !== null && authorization.untilMs > clock.now() ? authorization : null
}

function requestCookieBelow(basePath: string) {
  return (request: Request, value: string, maxAgeMs: number): string => {
    const flags = `HttpOnly; SameSite=Lax; Max-Age=${maxAgeMs / 1000}`
    const secure = contextOf(request).sender().secure ? '; Secure' : ''
    return `${cookieName}=${value}; Path=${basePath}/api/oidc; ${flags}${secure}`
  }
}

function redirect(location: string, cookie: string): Response {
  return new Response(null, { status: 303, headers: { location, 'set-cookie': cookie } })
}

function noProvider(): AppError {
  return new AppError('not_found', 'This appliance has no identity provider.', {
    hint: 'Start it with --oidc-issuer and --oidc-client-id.',
  })
}

/** The secrets of one authorization request, stored encrypted in a cookie of the browser. */
export interface AuthorizationRequest {
  state: string
  nonce: string
  verifier: string
}

export interface ProvenIdentity {
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
  let found: Promise<client.Configuration> | null = null
  const discover = (): Promise<client.Configuration> => {
    // Plain HTTP is for a provider on this machine; the configuration allows no other.
    const execute = issuer.startsWith('http:') ? [client.allowInsecureRequests] : []
    found ??= client.discovery(new URL(issuer), clientId, clientSecret ?? undefined, undefined, {
      execute,
      timeout: 10,
      [client.customFetch]: (url, init) => {
        const { hostname, port, protocol } = new URL(url)
        const known = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
        noteCall({ what: 'sign-in provider', host: hostname, address: null, port: known })
        return fetch(url, init as RequestInit)
      },
    })
    found.catch(() => (found = null))
    return found
  }
  return {
    name,
    async begin(redirectUrl) {
      const verifier = client.randomPKCECodeVerifier()
      const authorization = { state: client.randomState(), nonce: client.randomNonce(), verifier }
      const url = client.buildAuthorizationUrl(await discover(), {
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
      const tokens = await client.authorizationCodeGrant(config, url, checks)
      const claims = tokens.claims()
      if (claims === undefined) throw new Error('the provider sent no identity token')
      const profile =
        claims['email'] === undefined
          ? await client.fetchUserInfo(config, tokens.access_token, claims.sub)
          : claims
      const verified = profile['email_verified'] === true && typeof profile['email'] === 'string'
      const email = verified ? String(profile['email']).toLowerCase() : null
      return { issuer: claims.iss, subject: claims.sub, email }
    },
  }
}

/** The options of the operator. */
export interface OidcConfig {
  issuer: string
  clientId: string
  clientSecret: string | null // null: a public client, which PKCE alone protects
  name: string // on the button
}
