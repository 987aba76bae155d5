/** The path of a request, cut from its address without parsing the whole URL. */
export function pathOf(request: Request): string {
  const start = request.url.indexOf('/', request.url.indexOf('://') + 3)
  if (start === -1) return '/'
  const end = request.url.indexOf('?', start)
  return end === -1 ? request.url.slice(start) : request.url.slice(start, end)
}
