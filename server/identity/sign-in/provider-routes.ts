/** Sign-in through an identity provider: an authorization request in an encrypted cookie, then a verified identity. */
import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { addressOf } from '../../http/address.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from './sign-ins.ts'
import type { Clock } from '../../clock.ts'
import type { CursorCipher } from '../../system/encryption.ts'
import type { Log } from '../../log.ts'
import type { AuthorizationRequest, ProvenIdentity, Provider } from './provider.ts'
import { homeOf } from './sign-in.ts'

export interface ProviderRoutesServices {
  store: Store
  clock: Clock
  log: Log
  publicUrl: string | null
  basePath: string
  signIns: SignIns
  briefCipher: CursorCipher
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
        const sealed = briefCipher.encrypt(purpose, { ...authorization, untilMs: clock.now() + requestMs })
        return redirect(url, requestCookie(request, sealed, requestMs))
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
  const account = known ?? (email === null ? null : await services.store.accounts.findByEmail(email))
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
  const sealed = cookies.find((part) => part.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
  const authorization =
    sealed === undefined
      ? null
      : (briefCipher.decrypt(purpose, sealed) as (AuthorizationRequest & { untilMs: number }) | null)
  return authorization !== null && authorization.untilMs > clock.now() ? authorization : null
}

function requestCookieBelow(basePath: string) {
  return (request: Request, value: string, maxAgeMs: number): string => {
    const flags = `HttpOnly; SameSite=Lax; Max-Age=${maxAgeMs / 1000}`
    const secure = contextOf(request).secure ? '; Secure' : ''
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
