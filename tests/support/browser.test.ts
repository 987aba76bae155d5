/** Tests that a page with a hidden fault fails, and that visits share nothing. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { browser, closeBrowser, withPage } from './browser.ts'

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

/** A dashboard of two pages: it draws the page of its address, and focuses its title after a navigation. */
const dashboard = `${icon}<div class="shell"></div><main></main><script>
  let count = 0
  function draw() {
    const name = { '/first': 'First', '/second': 'Second' }[location.pathname] ?? 'Page not found'
    document.querySelector('main').innerHTML = '<h1 tabindex="-1">' + name + '</h1>'
    if (count++ > 0) document.querySelector('h1').focus()
  }
  addEventListener('popstate', draw)
  draw()
</script>`

let signIns = 0
let server: ReturnType<typeof serve>
function serve() {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const path = new URL(request.url).pathname
      if (path === '/worker.js')
        return new Response(worker, { headers: { 'content-type': 'text/javascript' } })
      if (path === '/api/session') return new Response()
      if (path === '/api/sign-in')
        return new Response('', { headers: { 'set-cookie': `signed=${++signIns}; Path=/` } })
      const policy = "script-src * 'unsafe-inline'; style-src 'self'"
      return new Response(pages[path] ?? (path.endsWith('.js') ? '' : dashboard), {
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

const browserState = (page: Page) =>
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
const blankState = ['', 0, 0, '', 1, 1, 1280, false, false, true, false]

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
    expect(await browserState(page)).toEqual(blankState)
    await put(page)
    expect(await withPage(url, browserState)).toEqual(blankState)
    expect((await browserState(page)).length).toBeGreaterThan(blankState.length)
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
  let pageBefore: [what: string, page: Page] | null = null
  const expectAnother = async (page: Page): Promise<void> => {
    expect([pageBefore?.[0], page === pageBefore?.[1]]).toEqual([pageBefore?.[0], false])
    expect(await browserState(page)).toEqual(blankState)
  }
  for (const [label, alter] of alterations) {
    await withPage(url, async (page) => {
      await expectAnother(page)
      await alter(page)
      pageBefore = [label, page]
    })
  }
  await withPage(url, expectAnother)
}, 30_000)

test('a visit that continues shows another page of the same document; every other one begins with nothing', async () => {
  const origin = `http://127.0.0.1:${server.port}`
  const credentials = { email: 'ada@example.com', password: 'x' }
  const look = async (page: Page) => ({
    title: await page.locator('h1').innerText(),
    planted: await page.evaluate(() => Reflect.get(window, 'planted') ?? null),
    stored: await page.evaluate(() => localStorage.getItem('planted')),
    history: await page.evaluate(() => history.length),
    zone: await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
  })
  const zone = 'Asia/Tokyo'
  const plant = async (page: Page) => {
    const state = await look(page)
    await page.evaluate(() => {
      Reflect.set(window, 'planted', 1)
      localStorage.setItem('planted', '1')
    })
    return state
  }
  const emptyState = { planted: null, stored: null, history: 1, zone: 'UTC' }
  const first = await withPage(`${origin}/first`, plant, { as: credentials, continues: true, zone })
  expect(first).toEqual({ ...emptyState, title: 'First', zone })
  const plantedState = { planted: 1, stored: '1', history: 1, zone }
  for (const [path, title] of [
    ['/second', 'Second'],
    ['/second', 'Second'], // drawn again
    ['/first', 'First'],
  ] as const)
    expect(await withPage(origin + path, look, { as: credentials, continues: true, zone })).toEqual({
      ...plantedState,
      title,
    })
  const asking = withPage(`${origin}/first`, async () => Promise.reject(new Error('as in a failed test')), {
    as: credentials,
    continues: true,
    zone,
  })
  expect(await asking.catch(String)).toContain('as in a failed test')
  expect(await withPage(`${origin}/first`, plant, { as: credentials, continues: true })).toEqual({
    ...emptyState,
    title: 'First',
  })
  const otherCredentials = { email: 'bob@example.com', password: 'x' }
  expect(await withPage(`${origin}/second`, plant, { as: otherCredentials, continues: true })).toEqual({
    ...emptyState,
    title: 'Second',
  })
  expect(await withPage(`${origin}/second`, look, { as: otherCredentials })).toEqual({
    ...emptyState,
    title: 'Second',
  })
  const late = async (page: Page) => page.evaluate(() => console.error('late'))
  expect(
    String(await withPage(`${origin}/first`, late, { as: credentials, continues: true }).catch(String)),
  ).toContain('late')
}, 30_000)

test('after a crash of the browser the next page opens in another one', async () => {
  const titleOf = () => withPage(`http://127.0.0.1:${server.port}/clean`, (page) => page.title())
  expect(await titleOf()).toBe('clean')
  await (await browser()).close()
  expect(await titleOf()).toBe('clean')
})
