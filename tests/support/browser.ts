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
  /** Of the machine, by default UTC. */
  zone?: string
  /** The account that is signed in when the page opens. */
  as?: { email: string; password: string }
  /**
   * True lets the dashboard prefetch and prerender its other pages when the browser is idle, for tests about that. It
   * costs as much processor time as the visit itself.
   */
  prefetches?: boolean
  /**
   * True opens the address in the document of the visit before, as a link does, if that was by the same sign-in.
   * Loading the dashboard anew costs twice as much. What the visit before left in memory remains, such as a theme.
   */
  continues?: boolean
  /** Receives the path of every request. */
  requests?: string[]
  /** Problems that this test provokes on purpose, such as the console line of a 401. */
  allow?: RegExp[]
  /** More of Playwright's context options. */
  context?: BrowserContextOptions
}

let launched: Promise<Browser> | null = null

/** The one browser of this test process. Another one after a crash, which fails one test and not all that follow. */
export function browser(): Promise<Browser> {
  launched ??= launch()
  return launched
}

async function launch(): Promise<Browser> {
  const newBrowser = await chromium.launch({
    executablePath: chromiumPath(),
    // A process per page costs a quarter of what opening the page costs, and one per site loses its compiled code.
    args: [
      '--renderer-process-limit=1',
      '--process-per-site',
      '--disable-site-isolation-trials',
      '--enable-features=WebMCP,DeclarativeWebMCP,NetworkServiceInProcess2',
      // With the network and the drawing in the browser's process a visit costs a twelfth less.
      '--in-process-gpu',
      // Pages live for seconds: compiling their scripts ahead and optimizing them costs a fifth of a visit.
      '--js-flags=--max-lazy --no-opt',
    ],
  })
  newBrowser.once('disconnected', () => {
    launched = null
    idle.clear()
  })
  return newBrowser
}

/** What else ends with the last file. */
const endings: (() => Promise<unknown>)[] = []

/** Calls `end` when no file of this process will open a page any more. */
export function atEnd(end: () => Promise<unknown>): void {
  endings.push(end)
}

/** Files of this process that have yet to close the browser; the runner names their number. */
let users = Number(process.env.SIGHTGLASS_TEST_FILES ?? 1)

/** Call once, in `afterAll`, in every file that used a page. The last one closes the browser. */
export async function closeBrowser(): Promise<void> {
  // The file stops its appliance next, and a page that shows it would try to reach it.
  await Promise.all([...idle.values()].flat().map((profile) => profile.shows !== null && leave(profile)))
  if (--users > 0) return
  const closing = launched
  launched = null
  idle.clear()
  await (await closing)?.close()
  for (const end of endings.splice(0)) await end()
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
  const continued = options.continues === true && cookie !== null ? `${origin} ${cookie.value}` : null
  const profile = await takeProfile(options, continued)
  const { context, page } = profile
  const problems: string[] = []
  try {
    watch(profile, origin, problems, options.requests)
    const isInside = continued !== null && profile.shows === continued
    if (!isInside || !(await page.evaluate(openInside, url))) {
      if (cookie !== null) await context.addCookies([cookie])
      await page.goto(url)
    }
    profile.shows = continued
    await profile.devtools.send('Page.resetNavigationHistory')
    const result = await visit(page)
    const unexpectedProblems = problems.filter(
      (problem) => !options.allow?.some((pattern) => pattern.test(problem)),
    )
    if (unexpectedProblems.length > 0)
      throw new Error(`the page was not clean:\n${unexpectedProblems.join('\n')}`)
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
  /** The sign-in whose dashboard it still shows for a visit that continues; null when it left the site. */
  shows: string | null
  /** Where the page reports violations of its content security policy during this visit. */
  report: (problem: string) => void
  /** True after a visit changed what a later visit cannot reset, such as a route or an init script. */
  isAltered: boolean
}

/**
 * Idle profiles with their page, by their options. Creating both costs as much processor time as two loads of a
 * dashboard page, so the next visit resets one of these instead. A failed visit discards its profile.
 */
const idle = new Map<string, Profile[]>()

async function takeProfile(options: PageOptions, continued: string | null): Promise<Profile> {
  const prefetches = options.prefetches ?? false
  const key = JSON.stringify([prefetches, options.context])
  const profiles = idle.get(key) ?? []
  const ownProfile = profiles.find(({ shows }) => shows === continued) ?? profiles[0]
  const profile = ownProfile ?? (await createProfile(key, options.context ?? {}, prefetches))
  idle.set(
    key,
    profiles.filter((candidate) => candidate !== ownProfile),
  )
  try {
    if (profile.shows !== null && profile.shows !== continued) await leave(profile)
    if (profile.shows === null) await forget(profile)
    await setLook(profile, options)
    return profile
  } catch (error) {
    await profile.context.close()
    throw error
  }
}

async function createProfile(
  key: string,
  options: BrowserContextOptions,
  prefetches: boolean,
): Promise<Profile> {
  const permissions = ['clipboard-read', 'clipboard-write']
  const context = await (await browser()).newContext({ permissions, viewport: desk, ...options })
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  const profile: Profile = {
    key,
    context,
    page,
    devtools,
    origins: new Set(),
    shows: null,
    report: () => {},
    isAltered: false,
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
  devtoolsOf.set(page, devtools)
  noticeAlterations(profile)
  return profile
}

/** Members of a page or its context whose effect outlasts the visit: a visit that uses one discards its profile. */
const lasting = [
  'addInitScript',
  'exposeFunction',
  'exposeBinding',
  'addLocatorHandler',
  'setExtraHTTPHeaders',
  'route',
  'routeFromHAR',
  'routeWebSocket',
  'clock',
  'on',
  'once',
  'close',
  'newPage',
  'newCDPSession',
  'grantPermissions',
  'setGeolocation',
  'setOffline',
]

function noticeAlterations(profile: Profile): void {
  profile.context.addListener('page', () => {
    profile.isAltered = true
  })
  for (const target of [profile.page, profile.context]) {
    for (const name of lasting.filter((memberName) => memberName in target)) {
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

/** Deletes cookies, storage, databases and service workers of earlier visits. */
async function forget({ devtools, origins }: Profile): Promise<void> {
  await devtools.send('Network.clearBrowserCookies')
  for (const origin of origins)
    await devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
  origins.clear()
}

const desk = { width: 1280, height: 800 }

/** Undoes the emulation of an earlier visit. */
async function setLook({ page, devtools }: Profile, options: PageOptions): Promise<void> {
  const { viewport = options.context?.viewport ?? desk, colorScheme = 'light', zone = '' } = options
  const nothingElse = { media: null, reducedMotion: null, forcedColors: null, contrast: null }
  await page.emulateMedia({ colorScheme, ...nothingElse })
  await page.setViewportSize(viewport)
  await devtools.send('Emulation.setTimezoneOverride', { timezoneId: zone })
  page.setDefaultTimeout(30_000)
  page.setDefaultNavigationTimeout(30_000)
}

/** Moves the machine of the visit to a time zone. A page that is open may not notice. */
export async function setZone(page: Page, timezoneId: string): Promise<void> {
  await devtoolsOf.get(page)?.send('Emulation.setTimezoneOverride', { timezoneId })
}

const devtoolsOf = new WeakMap<Page, CDPSession>()

/** Keeps the profile for the next visit if it may. */
async function giveBack(profile: Profile): Promise<void> {
  for (const event of ['console', 'pageerror', 'request']) profile.page.removeAllListeners(event)
  const end = profile.shows === null ? leave : unhover
  const isReady =
    !profile.isAltered &&
    (await end(profile).then(
      () => true,
      () => false,
    ))
  if (!isReady || profile.isAltered || launched === null) return profile.context.close()
  // Visits at the same time, as by two people, each have their own.
  idle.set(profile.key, [...(idle.get(profile.key) ?? []), profile])
}

/** Leaves the site, so that its streams and workers end. Rejects for a document that may have no storage. */
async function leave(profile: Profile): Promise<void> {
  const { page } = profile
  // Session storage belongs to the tab. What a page stores while it is left would outlast it.
  await page.evaluate(() => {
    sessionStorage.clear()
    Object.defineProperty(Storage.prototype, 'setItem', { value: () => {} })
    window.name = ''
  })
  await unhover(profile)
  await page.goto('about:blank')
  // The process that draws the page draws others, and takes a zone of one only.
  await profile.devtools.send('Emulation.setTimezoneOverride', { timezoneId: '' })
  profile.shows = null
}

/** Moves the mouse away, or the next page would be hovered. */
async function unhover({ page }: Profile): Promise<void> {
  await page.mouse.move(-1, -1)
}

/** Runs in the page: opens an address of the dashboard without loading the document. False if it cannot. */
async function openInside(url: string): Promise<boolean> {
  if (document.querySelector('.shell') === null || document.querySelector('dialog[open]') !== null)
    return false
  const open = async (target: string, isOpen: () => boolean): Promise<void> => {
    history.pushState(null, '', target)
    dispatchEvent(new PopStateEvent('popstate'))
    while (!isOpen()) await new Promise((resolve) => setTimeout(resolve))
  }
  // A page that is open already would not be drawn again.
  await open('/no-such-page', () => document.activeElement?.textContent === 'Page not found')
  // A page focuses its title, or its dialog, after it is drawn, and a click before that would lose the focus.
  const activeElement = document.activeElement
  await open(url, () => ![activeElement, document.body, null].includes(document.activeElement))
  return true
}

function watch(profile: Profile, origin: string, problems: string[], requests: string[] = []): void {
  const { page } = profile
  profile.origins.add(origin)
  profile.report = (problem) => problems.push(problem)
  page.addListener('console', (message) => {
    if (message.type() === 'error') problems.push(`console: ${message.text()} (${message.location().url})`)
  })
  page.addListener('pageerror', (error) => problems.push(`uncaught: ${error.stack ?? error.message}`))
  page.addListener('request', (request) => {
    const target = new URL(request.url())
    requests.push(target.pathname)
    if (target.protocol === 'data:' || target.protocol === 'blob:') return
    if (target.origin === origin) return
    problems.push(`request to another host: ${request.method()} ${target.href}`)
    profile.isAltered = true // its data on that host is not deleted
  })
}

/** Cookies of accounts that signed in before, by origin and email address. */
const sessions = new Map<string, string>()

/** Calls the API as the account, whose visits use the cookie of the answer, such as that of another organization. */
export async function postAs<T>(
  url: string,
  account: { email: string; password: string },
  path: string,
  body: unknown,
): Promise<T> {
  const { name, value } = await sessionCookie(url, account)
  const headers = { 'content-type': 'application/json', cookie: `${name}=${value}` }
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  const cookie = answer.headers.get('set-cookie')?.split(';')[0]
  if (cookie !== undefined) sessions.set(`${url} ${account.email}`, cookie)
  return (await answer.json()) as T
}

/** The cookie of a session in the data that the appliance serves, for visits of its account. */
export function useSession(url: string, email: string, cookie: string): void {
  sessions.set(`${url} ${email}`, cookie)
}

/** Signs in over the API once per appliance and account: loading and filling in the form costs a second. */
export async function sessionCookie(
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
  const index = cookie.indexOf('=')
  return { name: cookie.slice(0, index), value: cookie.slice(index + 1), url, httpOnly: true }
}
