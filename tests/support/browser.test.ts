/** Tests that a page with a hidden fault really fails, and a clean one does not. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { closeBrowser, withPage } from './browser.ts'

const pages: Record<string, string> = {
  '/clean': '<title>clean</title><link rel="icon" href="data:,">',
  '/error': '<link rel="icon" href="data:,"><script>console.error("broken")</script>',
  '/throw': '<link rel="icon" href="data:,"><script>setTimeout(() => { throw new Error("late") })</script>',
  '/csp': '<link rel="icon" href="data:,"><p style="color: red">styled</p>',
  '/foreign': '<link rel="icon" href="data:,"><script>fetch("http://127.0.0.1:9/x").catch(() => {})</script>',
}

let server: ReturnType<typeof serve>
function serve() {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const path = new URL(request.url).pathname
      const policy =
        path === '/csp'
          ? "default-src 'none'; img-src data:; style-src 'self'"
          : "script-src * 'unsafe-inline'"
      return new Response(pages[path] ?? '', {
        headers: { 'content-type': 'text/html', 'content-security-policy': policy },
      })
    },
  })
}

beforeAll(() => {
  server = serve()
})
afterAll(async () => {
  await closeBrowser()
  await server.stop(true)
})

const visit = (path: string, allow: RegExp[] = []): Promise<string> =>
  withPage(
    `http://127.0.0.1:${server.port}${path}`,
    async (page) => {
      await page.waitForTimeout(100)
      return page.title()
    },
    { allow },
  )

test('a clean page passes and gives back what the visit returns', async () => {
  expect(await visit('/clean')).toBe('clean')
}, 90_000)

test.each([
  ['/error', /console: broken/],
  ['/throw', /uncaught: Error: late/],
  ['/csp', /content security policy: style-src/],
  ['/foreign', /request to another host: GET http:\/\/127\.0\.0\.1:9\/x/],
])(
  '%s fails',
  async (path, problem) => {
    const failure = await visit(path).then(
      () => 'clean',
      (error: unknown) => String(error), // not `rejects`: it turns the event loop by hand and takes seconds here
    )
    expect(failure).toMatch(problem)
  },
  30_000,
)

test('an expected problem can be allowed by name', async () => {
  expect(await visit('/error', [/console: broken/])).toBe('')
}, 90_000)
