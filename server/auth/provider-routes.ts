/** Signing in through an identity provider: out with an errand in a sealed cookie, back with a proven identity. */
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { contextOf } from '../http/context.ts'
import type { Parts } from '../parts.ts'
import { readQuery } from '../http/query.ts'
import type { Errand, ProvenIdentity } from './provider.ts'
import { homeOf } from './sign-in.ts'

const cookieName = 'sightglass_errand'
const purpose = 'oidc-errand'
const errandMs = 10 * 60_000

/** Why a sign-in did not come about: told on the sign-in page. */
type Refusal = 'unreachable' | 'failed' | 'no_account'

export function providerRoutes(parts: Parts) {
  const redirectUrl = (request: Request) =>
    `${parts.publicUrl ?? new URL(request.url).origin}/api/oidc/callback`
  return new Elysia()
    .get('/api/oidc/start', async ({ request }) => {
      const { provider, seal, clock, log } = parts
      readQuery(request, {})
      if (provider === null) throw noProvider()
      try {
        const { url, errand } = await provider.begin(redirectUrl(request))
        const sealed = seal.close(purpose, { ...errand, untilMs: clock.now() + errandMs })
        return redirect(url, errandCookie(request, sealed, errandMs))
      } catch (error) {
        log.warn('provider_failed', { at: 'start', message: String(error) })
        return refuse(request, 'unreachable')
      }
    })
    .get('/api/oidc/callback', async ({ request }) => {
      if (parts.provider === null) throw noProvider()
      const errand = errandOf(parts, request)
      if (errand === null) return refuse(request, 'failed')
      const query = new URL(request.url).search
      try {
        const proven = await parts.provider.finish(new URL(redirectUrl(request) + query), errand)
        return (await enter(parts, request, proven)) ?? refuse(request, 'no_account')
      } catch (error) {
        parts.log.warn('provider_failed', { at: 'callback', message: String(error) })
        return refuse(request, 'failed')
      }
    })
}

/** Only people who have an account come in: by the subject once it is known, at first by the verified address. */
async function enter(parts: Parts, request: Request, proven: ProvenIdentity): Promise<Response | null> {
  const { issuer, subject, email } = proven
  const known = await parts.store.signIns.findExternal({ issuer, subject })
  const account = known ?? (email === null ? null : await parts.store.accounts.findByEmail(email))
  const orgId = account && (await homeOf(parts, account.id))
  if (!account || !orgId) return null
  const who = { accountId: account.id, orgId, email: account.email }
  const { cookie } = await parts.signIns.begin(request, who, {
    by: 'provider',
    external: { issuer, subject },
  })
  const answer = redirect('/', cookie)
  answer.headers.append('set-cookie', errandCookie(request, '', 0))
  return answer
}

function errandOf({ seal, clock }: Parts, request: Request): Errand | null {
  const cookies = (request.headers.get('cookie') ?? '').split(';').map((part) => part.trim())
  const sealed = cookies.find((part) => part.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
  const errand =
    sealed === undefined ? null : (seal.open(purpose, sealed) as (Errand & { untilMs: number }) | null)
  return errand !== null && errand.untilMs > clock.now() ? errand : null
}

function errandCookie(request: Request, value: string, maxAgeMs: number): string {
  const secure = contextOf(request).secure ? '; Secure' : ''
  return `${cookieName}=${value}; Path=/api/oidc; HttpOnly; SameSite=Lax; Max-Age=${maxAgeMs / 1000}${secure}`
}

function refuse(request: Request, why: Refusal): Response {
  return redirect(`/sign-in?refused=${why}`, errandCookie(request, '', 0))
}

function redirect(location: string, cookie: string): Response {
  return new Response(null, { status: 303, headers: { location, 'set-cookie': cookie } })
}

function noProvider(): AppError {
  return new AppError('not_found', 'This appliance knows no identity provider.', {
    hint: 'Start it with --oidc-issuer and --oidc-client-id.',
  })
}
