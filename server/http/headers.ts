/** The response headers every answer carries, and the stricter pair for pages (field notes §3). */

const always: Record<string, string> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

export const pageCsp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const dataCsp = "default-src 'none'; frame-ancestors 'none'; sandbox"

const common = { ...always, 'content-security-policy': dataCsp, 'cache-control': 'no-store' }

/** For an answer that has them from the start: setting them one by one costs as much as parsing its request. */
export function commonHeaders(contentType: string): Headers {
  return new Headers({ ...common, 'content-type': contentType })
}

/** Adds the common headers to an answer; what a handler set itself stands. */
export function addCommonHeaders(response: Response, requestId: string): Response {
  const headers = response.headers
  headers.set('x-request-id', requestId)
  if (headers.has('x-content-type-options')) return response // made with `commonHeaders`
  for (const name in always) if (!headers.has(name)) headers.set(name, always[name]!)
  if (!headers.has('content-security-policy')) headers.set('content-security-policy', dataCsp)
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  return response
}
