/** Rejects state-changing requests from pages of other sites (OWASP CSRF cheat sheet, the rule of Go 1.25). */
import { AppError } from '../errors.ts'
import { hostName } from '../http/address.ts'

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Throws 403 for a cross-site POST: by Sec-Fetch-Site where the browser sends it, else by Origin against Host. */
export function requireSameOrigin(request: Request): void {
  if (safeMethods.has(request.method)) return
  const site = request.headers.get('sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin' || site === 'none') return
    throw crossSite()
  }
  const origin = request.headers.get('origin')
  if (origin === null) return // not a browser, which would attach the cookie by itself
  const host = request.headers.get('host')
  const match = /^https?:\/\/(.+)$/.exec(origin)
  if (host === null || !match || match[1]!.toLowerCase() !== host.toLowerCase() || hostName(host) === null) {
    throw crossSite()
  }
}

function crossSite(): AppError {
  return new AppError('forbidden', 'The request came from another site.', {
    hint: 'Behind a reverse proxy, pass the Host header through unchanged.',
  })
}
