/** Tests that a page with a hidden fault fails, and a clean one does not. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser, withPage } from './browser.ts'

/** A shared worker that numbers the pages connected to it; as a service worker it does nothing. */
const worker = 'let pages = 0; onconnect = ({ ports }) => ports[0].postMessage(++pages)'

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
      if (path === '/worker.js')
        return new Response(worker, { headers: { 'content-type': 'text/javascript' } })
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

const put = (page: Page) =>
  page.evaluate(async () => {
    document.cookie = 'a=1'
    localStorage.setItem('a', '1')
    sessionStorage.setItem('a', '1')
    addEventListener('pagehide', () => {
      localStorage.setItem('late', '1')
      sessionStorage.setItem('late', '1')
    })
    window.name = 'a'
    history.pushState(null, '', '?pushed')
    await caches.open('a')
    await new Promise((resolve) => {
      const opening = indexedDB.open('a')
      opening.onsuccess = () => resolve(opening.result.close())
    })
    await navigator.serviceWorker.register('/worker.js')
    const shared = new SharedWorker('/worker.js')
    await new Promise((resolve) => {
      shared.port.onmessage = resolve
    })
  })

const found = (page: Page) =>
  page.evaluate(async () => [
    document.cookie,
    localStorage.length,
    sessionStorage.length,
    window.name,
    history.length,
    ...(await caches.keys()),
    ...(await indexedDB.databases()),
    ...(await navigator.serviceWorker.getRegistrations()),
    // The number of pages that connected to the same shared worker.
    await new Promise((resolve) => {
      const shared = new SharedWorker('/worker.js')
      shared.port.onmessage = ({ data }) => resolve(data)
    }),
    innerWidth,
    matchMedia('(prefers-color-scheme: dark)').matches,
    matchMedia('print').matches,
    document.querySelector(':hover') === null,
    Reflect.has(window, 'planted'),
  ])
const nothing = ['', 0, 0, '', 1, 1, 1280, false, false, true, false]

test('the next visit finds nothing of the one before, and two at a time share nothing', async () => {
  const url = `http://127.0.0.1:${server.port}/clean`
  await withPage(url, put, { colorScheme: 'dark', viewport: { width: 390, height: 800 } })
  expect(await withPage(url, found)).toEqual(nothing)
  await withPage(url, async (page) => {
    await put(page)
    expect(await withPage(url, found)).toEqual(nothing)
    expect((await found(page)).length).toBeGreaterThan(nothing.length)
  })
}, 30_000)

test('a visit undoes emulation, and its page is reused', async () => {
  const url = `http://127.0.0.1:${server.port}/clean`
  const first = await withPage(url, async (page) => {
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    await page.setViewportSize({ width: 500, height: 500 })
    await page.mouse.move(20, 20)
    return page
  })
  await withPage(url, async (page) => {
    expect(page === first).toBe(true)
    expect(await found(page)).toEqual(nothing)
  })
}, 30_000)

const alterations: [string, (page: Page) => Promise<unknown>][] = [
  ['an init script', (page) => page.addInitScript(() => Reflect.set(window, 'planted', true))],
  ['a function', (page) => page.exposeFunction('planted', () => {})],
  ['a route', (page) => page.route('**/other', (route) => route.abort())],
  ['a clock', (page) => page.clock.install()],
  ['a listener', async (page) => page.on('popup', () => {})],
  ['a second page', (page) => page.context().newPage()],
  ['a window', (page) => Promise.all([page.waitForEvent('popup'), page.evaluate(() => void open('/clean'))])],
]
test.each(alterations)(
  'the page of a visit with %s is discarded',
  async (_what, alter) => {
    const url = `http://127.0.0.1:${server.port}/clean`
    const altered = await withPage(url, async (page) => {
      await alter(page)
      return page
    })
    await withPage(url, async (page) => {
      expect(page === altered).toBe(false)
      expect(await found(page)).toEqual(nothing)
    })
  },
  30_000,
)

test('problems of an earlier visit are not reported by a later one, and a reused page still reports', async () => {
  await visit('/error', [/console: broken/])
  expect(await visit('/clean')).toBe('clean')
  expect(await visit('/csp').catch(String)).toMatch(/content security policy: style-src/)
}, 30_000)
