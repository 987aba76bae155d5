/** The sign-in cookie: `__Host-` and Secure over https, a plain name where the page itself came over plain HTTP. */

const secureName = '__Host-sightglass'
const plainName = 'sightglass'

export function readCookie(header: string | null, secure: boolean): string | null {
  if (!header || header.length > 8_192) return null
  const wanted = secure ? secureName : plainName
  for (const part of header.split(';')) {
    const [name, value] = part.trim().split('=', 2)
    if (name === wanted && value && /^[A-Za-z0-9_-]{43}$/.test(value)) return value
  }
  return null
}

/** The Set-Cookie that signs in for `maxAgeMs`; an empty token with 0 signs out. */
export function cookieHeader(token: string, secure: boolean, maxAgeMs: number): string {
  const name = secure ? secureName : plainName
  const flags = secure ? '; Secure' : ''
  return `${name}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${Math.floor(maxAgeMs / 1000)}${flags}`
}
