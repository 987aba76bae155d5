/** The sign-in cookie: `__Host-` and Secure over https, a plain name where the page itself came over plain HTTP. */

/** How the cookie reaches us: over https or not, and below which path of a host that others may share. */
export interface CookieWay {
  secure: boolean
  basePath: string
}

/** Browsers take `__Host-` for the whole host only; below a base path two appliances may share one. */
function nameOf({ secure, basePath }: CookieWay): string {
  if (!secure) return 'sightglass'
  return basePath === '' ? '__Host-sightglass' : '__Secure-sightglass'
}

export function readCookie(header: string | null, way: CookieWay): string | null {
  if (!header || header.length > 8_192) return null
  const wanted = nameOf(way)
  for (const part of header.split(';')) {
    const [name, value] = part.trim().split('=', 2)
    if (name === wanted && value && /^[A-Za-z0-9_-]{43}$/.test(value)) return value
  }
  return null
}

/** The Set-Cookie that signs in for `maxAgeMs`; an empty token with 0 signs out. */
export function cookieHeader(token: string, way: CookieWay, maxAgeMs: number): string {
  const flags = `HttpOnly; SameSite=Lax; Max-Age=${Math.floor(maxAgeMs / 1000)}${way.secure ? '; Secure' : ''}`
  return `${nameOf(way)}=${token}; Path=${way.basePath || '/'}; ${flags}`
}
