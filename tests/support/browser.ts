/** A real Chromium for tests, which fails a test on any console error, CSP report or request to another host. */
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
  chromium,
} from 'playwright'

export interface PageOptions {
  colorScheme?: 'light' | 'dark'
  viewport?: { width: number; height: number }
  /** Problems that this test provokes on purpose, such as the console line of a 401. */
  allow?: RegExp[]
  /** More of Playwright's context options, such as `storageState` or `permissions`. */
  context?: BrowserContextOptions
}

let launched: Promise<Browser> | null = null

/** The one browser of this test process. `CHROMIUM` names another executable than Debian's. */
export function browser(): Promise<Browser> {
  launched ??= chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    // A process per page costs a quarter of what opening the page costs.
    args: ['--renderer-process-limit=1'],
  })
  return launched
}

/** Call in `afterAll` of every file that used a page. */
export async function closeBrowser(): Promise<void> {
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
  const profile = await takeProfile({
    viewport: options.viewport ?? { width: 1280, height: 800 },
    colorScheme: options.colorScheme ?? 'light',
    ...options.context,
  })
  const { context } = profile
  const problems: string[] = []
  try {
    const page = await context.newPage()
    await empty(profile, page)
    profile.origins.add(origin)
    await watch(page, origin, problems)
    await page.goto(url)
    const result = await visit(page)
    const left = problems.filter((problem) => !options.allow?.some((pattern) => pattern.test(problem)))
    if (left.length > 0) throw new Error(`the page was not clean:\n${left.join('\n')}`)
    await Promise.all(context.pages().map((one) => one.close()))
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
  /** Origins whose data it may have. */
  origins: Set<string>
}

/**
 * Idle profiles, by their options. Creating one takes twice the processor time of opening a page, so the next visit
 * empties one of these instead. A failed visit discards its profile.
 */
const idle = new Map<string, Profile>()

async function takeProfile(options: BrowserContextOptions): Promise<Profile> {
  const key = JSON.stringify(options)
  const found = idle.get(key)
  if (found !== undefined) {
    idle.delete(key)
    return found
  }
  const context = await (await browser()).newContext(options)
  return { key, context, origins: new Set() }
}

async function giveBack(profile: Profile): Promise<void> {
  // A second visit at the same time, as by another person, had its own profile.
  if (idle.has(profile.key) || launched === null) await profile.context.close()
  else idle.set(profile.key, profile)
}

/** Deletes cookies, storage, databases, caches and service workers of earlier visits. */
async function empty({ context, origins }: Profile, page: Page): Promise<void> {
  if (origins.size === 0) return
  const devtools = await context.newCDPSession(page)
  await devtools.send('Network.clearBrowserCookies')
  await devtools.send('Network.clearBrowserCache')
  for (const origin of origins)
    await devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
  await devtools.detach()
  origins.clear()
}

async function watch(page: Page, origin: string, problems: string[]): Promise<void> {
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`console: ${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.stack ?? error.message}`))
  page.on('request', (request) => {
    const target = new URL(request.url())
    if (target.protocol === 'data:' || target.protocol === 'blob:') return
    if (target.origin !== origin) problems.push(`request to another host: ${request.method()} ${target.href}`)
  })
  // A violation by a report-only policy or a blocked inline style is not always a console error.
  await page.exposeFunction('reportViolation', (text: string) => {
    problems.push(`content security policy: ${text}`)
  })
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const report: unknown = Reflect.get(window, 'reportViolation')
      if (typeof report === 'function') report(`${event.violatedDirective} blocked ${event.blockedURI}`)
    })
  })
}
