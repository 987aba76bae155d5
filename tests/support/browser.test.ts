/** Tests that a page with a hidden fault fails, and a clean one does not. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
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
      (error: unknown) => String(error), // not `rejects`, which polls and takes seconds here
    )
    expect(failure).toMatch(problem)
  },
  30_000,
)

test('an expected problem can be allowed by name', async () => {
  expect(await visit('/error', [/console: broken/])).toBe('')
}, 90_000)

test('the next visit finds nothing of the one before, and two at a time share nothing', async () => {
  const url = `http://127.0.0.1:${server.port}/clean`
  const put = (page: Page) =>
    page.evaluate(async () => {
      document.cookie = 'a=1'
      localStorage.setItem('a', '1')
      sessionStorage.setItem('a', '1')
      await caches.open('a')
      await new Promise((resolve) => {
        const opening = indexedDB.open('a')
        opening.onsuccess = () => resolve(opening.result.close())
      })
    })
  const found = (page: Page) =>
    page.evaluate(async () => [
      document.cookie,
      localStorage.length,
      sessionStorage.length,
      ...(await caches.keys()),
      ...(await indexedDB.databases()),
      innerWidth,
      matchMedia('(prefers-color-scheme: dark)').matches,
    ])
  await withPage(url, put, { colorScheme: 'dark', viewport: { width: 390, height: 800 } })
  const nothing = ['', 0, 0, 1280, false]
  expect(await withPage(url, found)).toEqual(nothing)
  await withPage(url, async (page) => {
    await put(page)
    expect(await withPage(url, found)).toEqual(nothing)
    expect(await found(page)).toHaveLength(7)
  })
}, 30_000)
