/** The path of a request, cut from its address without parsing the whole URL; and an address where Bun gives none. */

/**
 * The request with an absolute address. Without a valid Host header Bun's `url` is the bare path, which this module and
 * the router would cut at different places: a path checked here would not be the path that is served.
 */
export function withWholeUrl(request: Request): Request {
  if (request.url.startsWith('http://')) return request
  if (request.url.startsWith('https://')) {
    // The router looks for the path behind `http://` only. The same object goes on: its body and its signal are bound
    // to the connection, and who asks whether it was secure asks its context.
    return Object.defineProperty(request, 'url', { value: `http${request.url.slice('https'.length)}` })
  }
  return new Request(`http://unnamed.invalid/${request.url.replace(/^\//, '')}`, request)
}

/** Needs an absolute address. */
export function pathOf(request: Request): string {
  const start = request.url.indexOf('/', request.url.indexOf('://') + 3)
  if (start === -1) return '/'
  const end = request.url.indexOf('?', start)
  return end === -1 ? request.url.slice(start) : request.url.slice(start, end)
}
