/** A real Chromium for tests, which fails a test on any console error, CSP report or request to another host. */
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type CDPSession,
  type Page,
  chromium,
} from 'playwright'
import { chromiumPath } from '../../scripts/chromium.ts'

export interface PageOptions {
  colorScheme?: 'light' | 'dark'
  viewport?: { width: number; height: number }
  /** The account that is signed in when the page opens. */
  as?: { email: string; password: string }
  /**
   * True lets the dashboard prefetch and prerender its other pages when the browser is idle, for tests about that. It
   * costs as much processor time as the visit itself.
   */
  prefetches?: boolean
  /** Problems that this test provokes on purpose, such as the console line of a 401. */
  allow?: RegExp[]
  /** More of Playwright's context options, such as `storageState` or `permissions`. */
  context?: BrowserContextOptions
}

let launched: Promise<Browser> | null = null

/** The one browser of this test process. */
export function browser(): Promise<Browser> {
  launched ??= chromium.launch({
    executablePath: chromiumPath(),
    // A process per page costs a quarter of what opening the page costs, and one per site loses its compiled code.
    args: [
      ...['--renderer-process-limit=1', '--process-per-site', '--disable-site-isolation-trials'],
      '--enable-features=WebMCP,DeclarativeWebMCP',
      // Pages live for seconds: compiling their scripts ahead and optimizing them costs a fifth of a visit.
      '--js-flags=--max-lazy --no-opt',
    ],
  })
  return launched
}

/** Files of this process that have yet to close the browser; the runner names their number. */
let users = Number(process.env.SIGHTGLASS_TEST_FILES ?? 1)

/** Call once, in `afterAll`, in every file that used a page. The last one closes the browser. */
export async function closeBrowser(): Promise<void> {
  if (--users > 0) return
  const closing = launched
  launched = null
  idle.clear()
  await (await closing)?.close()
}

/**
 * Opens `url` in an empty profile and passes the page to `visit`. Rejects afterwards when something failed that a
 * visitor would not see. Returns the result of `visit`.
 */
export async function withPage<T>(
  url: string,
  visit: (page: Page) => Promise<T>,
  options: PageOptions = {},
): Promise<T> {
  const { origin } = new URL(url)
  const cookie = options.as === undefined ? null : await sessionCookie(origin, options.as)
  const profile = await takeProfile(options)
  const { context, page } = profile
  const problems: string[] = []
  try {
    await watch(profile, origin, problems)
    if (cookie !== null) await context.addCookies([cookie])
    await page.goto(url)
    await profile.devtools.send('Page.resetNavigationHistory')
    const result = await visit(page)
    const left = problems.filter((problem) => !options.allow?.some((pattern) => pattern.test(problem)))
    if (left.length > 0) throw new Error(`the page was not clean:\n${left.join('\n')}`)
    await giveBack(profile)
    return result
  } catch (error) {
    await context.close()
    throw error
  }
}

interface Profile {
  key: string
  context: BrowserContext
  page: Page
  devtools: CDPSession
  /** Origins whose data it may have. */
  origins: Set<string>
  /** Where the page reports violations of its content security policy during this visit. */
  report: (problem: string) => void
  /** True after a visit changed what a later visit cannot reset, such as a route or an init script. */
  isAltered: boolean
}

/**
 * Idle profiles with their page, by their options. Creating both costs as much processor time as two loads of a
 * dashboard page, so the next visit resets one of these instead. A failed visit discards its profile.
 */
const idle = new Map<string, Profile>()

async function takeProfile(options: PageOptions): Promise<Profile> {
  const look = {
    viewport: options.viewport ?? { width: 1280, height: 800 },
    colorScheme: options.colorScheme ?? 'light',
  }
  const prefetches = options.prefetches ?? false
  const key = JSON.stringify([prefetches, options.context])
  const found = idle.get(key)
  if (found === undefined) return createProfile(key, { ...look, ...options.context }, prefetches)
  idle.delete(key)
  try {
    await reset(found, look)
    return found
  } catch (error) {
    await found.context.close()
    throw error
  }
}

async function createProfile(
  key: string,
  options: BrowserContextOptions,
  prefetches: boolean,
): Promise<Profile> {
  const context = await (await browser()).newContext(options)
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  const profile: Profile = {
    ...{ key, context, page, devtools, origins: new Set() },
    ...{ report: () => {}, isAltered: false },
  }
  // A violation by a report-only policy or a blocked inline style is not always a console error.
  await page.exposeFunction('reportViolation', (text: string) => {
    profile.report(`content security policy: ${text}`)
  })
  await page.addInitScript((isEverIdle) => {
    if (!isEverIdle) window.requestIdleCallback = () => 0
    document.addEventListener('securitypolicyviolation', (event) => {
      const report: unknown = Reflect.get(window, 'reportViolation')
      if (typeof report === 'function') report(`${event.violatedDirective} blocked ${event.blockedURI}`)
    })
  }, prefetches)
  noticeAlterations(profile)
  return profile
}

/** Members of a page or its context whose effect outlasts the visit: a visit that uses one discards its profile. */
const lasting = [
  ...['addInitScript', 'exposeFunction', 'exposeBinding', 'addLocatorHandler', 'setExtraHTTPHeaders'],
  ...['route', 'routeFromHAR', 'routeWebSocket', 'clock', 'on', 'once', 'close'],
  ...['newPage', 'newCDPSession', 'grantPermissions', 'setGeolocation', 'setOffline'],
]

function noticeAlterations(profile: Profile): void {
  profile.context.addListener('page', () => {
    profile.isAltered = true
  })
  for (const target of [profile.page, profile.context]) {
    for (const name of lasting.filter((each) => each in target)) {
      const member: unknown = Reflect.get(target, name)
      const value: unknown = typeof member === 'function' ? member.bind(target) : member
      Object.defineProperty(target, name, {
        get() {
          profile.isAltered = true
          return value
        },
      })
    }
  }
}

/** Deletes cookies, storage, databases and service workers of earlier visits, and undoes their emulation. */
async function reset({ page, devtools, origins }: Profile, look: Required<Look>): Promise<void> {
  await devtools.send('Network.clearBrowserCookies')
  for (const origin of origins)
    await devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
  origins.clear()
  const { viewport, colorScheme } = look
  await page.emulateMedia({
    media: null,
    colorScheme,
    reducedMotion: null,
    forcedColors: null,
    contrast: null,
  })
  await page.setViewportSize(viewport)
  page.setDefaultTimeout(30_000)
  page.setDefaultNavigationTimeout(30_000)
}

type Look = Pick<PageOptions, 'viewport' | 'colorScheme'>

/** Keeps the profile for the next visit if it may. */
async function giveBack(profile: Profile): Promise<void> {
  const isLeft = !profile.isAltered && (await leave(profile.page).catch(() => false))
  // A second visit at the same time, as by another person, had its own profile.
  if (isLeft && !profile.isAltered && launched !== null && !idle.has(profile.key))
    idle.set(profile.key, profile)
  else await profile.context.close()
}

/** Leaves the site, so that its streams and workers end. Rejects for a document that may have no storage. */
async function leave(page: Page): Promise<boolean> {
  // Session storage belongs to the tab. What a page stores while it is left would outlast it.
  await page.evaluate(() => {
    sessionStorage.clear()
    Object.defineProperty(Storage.prototype, 'setItem', { value: () => {} })
    window.name = ''
  })
  await page.mouse.move(-1, -1) // or the next page would be hovered
  await page.goto('about:blank')
  for (const event of ['console', 'pageerror', 'request']) page.removeAllListeners(event)
  return true
}

async function watch(profile: Profile, origin: string, problems: string[]): Promise<void> {
  const { page } = profile
  profile.origins.add(origin)
  profile.report = (problem) => problems.push(problem)
  page.addListener('console', (message) => {
    if (message.type() === 'error') problems.push(`console: ${message.text()} (${message.location().url})`)
  })
  page.addListener('pageerror', (error) => problems.push(`uncaught: ${error.stack ?? error.message}`))
  page.addListener('request', (request) => {
    const target = new URL(request.url())
    if (target.protocol === 'data:' || target.protocol === 'blob:') return
    if (target.origin === origin) return
    problems.push(`request to another host: ${request.method()} ${target.href}`)
    profile.isAltered = true // its data on that host is not deleted
  })
}

/** Cookies of accounts that signed in before, by origin and email address. */
const sessions = new Map<string, string>()

/** Signs in over the API once per appliance and account: loading and filling in the form costs a second. */
async function sessionCookie(
  url: string,
  account: { email: string; password: string },
): Promise<{ name: string; value: string; url: string; httpOnly: boolean }> {
  const key = `${url} ${account.email}`
  let cookie = sessions.get(key)
  // The session may have ended, and a later appliance may have the same port.
  if (cookie === undefined || !(await fetch(`${url}/api/session`, { headers: { cookie } })).ok) {
    const answer = await fetch(`${url}/api/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: account.email, password: account.password }),
    })
    if (!answer.ok) throw new Error(`sign-in of ${account.email}: ${answer.status} ${await answer.text()}`)
    cookie = answer.headers.get('set-cookie')!.split(';')[0]!
    sessions.set(key, cookie)
  }
  const at = cookie.indexOf('=')
  return { name: cookie.slice(0, at), value: cookie.slice(at + 1), url, httpOnly: true }
}
