/** Tests that a page with a hidden fault fails, and that visits share nothing. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser, withPage } from './browser.ts'

/** A shared worker that numbers the pages connected to it; as a service worker it does nothing. */
const worker = 'let pages = 0; onconnect = ({ ports }) => ports[0].postMessage(++pages)'

const icon = '<link rel="icon" href="data:,">'
const pages: Record<string, string> = {
  '/clean': `<title>clean</title>${icon}`,
  '/error': `${icon}<script>console.error("broken")</script>`,
  '/faulty': `${icon}<p style="color: red">styled</p><script>
    console.error('broken')
    setTimeout(() => { throw new Error('late') })
    fetch('http://127.0.0.1:9/x').catch(() => {})
  </script>`,
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
      const policy = "script-src * 'unsafe-inline'; style-src 'self'"
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
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve))) // after the timers of the page
      return page.title()
    },
    { allow },
  )

test('a clean page passes, allowed problems pass once, and each other problem fails a reused page', async () => {
  expect(await visit('/clean')).toBe('clean')
  expect(await visit('/error', [/console: broken/])).toBe('')
  expect(await visit('/clean')).toBe('clean') // problems of an earlier visit are not reported by a later one
  const failure = await visit('/faulty').catch(String)
  for (const problem of [
    /console: broken/,
    /uncaught: Error: late/,
    /content security policy: style-src/,
    /request to another host: GET http:\/\/127\.0\.0\.1:9\/x/,
  ])
    expect(failure).toMatch(problem)
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

test('a reused page finds nothing of the visit before, and two visits at a time share nothing', async () => {
  const url = `http://127.0.0.1:${server.port}/clean`
  const look = { colorScheme: 'dark', viewport: { width: 390, height: 800 } } as const
  const first = await withPage(
    url,
    async (page) => {
      await put(page)
      await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
      await page.setViewportSize({ width: 500, height: 500 })
      await page.mouse.move(20, 20)
      return page
    },
    look,
  )
  await withPage(url, async (page) => {
    expect(page === first).toBe(true)
    expect(await found(page)).toEqual(nothing)
    await put(page)
    expect(await withPage(url, found)).toEqual(nothing)
    expect((await found(page)).length).toBeGreaterThan(nothing.length)
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
test('a page is discarded after a visit with any lasting alteration', async () => {
  const url = `http://127.0.0.1:${server.port}/clean`
  let before: [what: string, page: Page] | null = null
  const expectAnother = async (page: Page): Promise<void> => {
    expect([before?.[0], page === before?.[1]]).toEqual([before?.[0], false])
    expect(await found(page)).toEqual(nothing)
  }
  for (const [what, alter] of alterations) {
    await withPage(url, async (page) => {
      await expectAnother(page)
      await alter(page)
      before = [what, page]
    })
  }
  await withPage(url, expectAnother)
}, 30_000)
