/** A real Chromium for tests, which fails a test on any console error, CSP report or request to another host. */
import { type Browser, type BrowserContextOptions, type Page, chromium } from 'playwright'

export interface PageOptions {
  colorScheme?: 'light' | 'dark'
  viewport?: { width: number; height: number }
  /** Problems that this test provokes on purpose, such as the console line of a 401. */
  allow?: RegExp[]
  /** More of Playwright's own context options, such as `storageState` or `permissions`. */
  context?: BrowserContextOptions
}

let launched: Promise<Browser> | null = null

/** The one browser of this test process. `CHROMIUM` names another executable than Debian's. */
export function browser(): Promise<Browser> {
  launched ??= chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium' })
  return launched
}

/** Call in `afterAll` of every file that used a page. */
export async function closeBrowser(): Promise<void> {
  const closing = launched
  launched = null
  await (await closing)?.close()
}

/**
 * Opens `url` in a fresh profile and hands the page to `visit`; rejects afterwards when anything went wrong that a
 * visitor would not see but must not happen. Returns what `visit` returns.
 */
export async function withPage<T>(
  url: string,
  visit: (page: Page) => Promise<T>,
  options: PageOptions = {},
): Promise<T> {
  const context = await (
    await browser()
  ).newContext({
    colorScheme: options.colorScheme ?? 'light',
    viewport: options.viewport ?? { width: 1280, height: 800 },
    ...options.context,
  })
  const problems: string[] = []
  try {
    const page = await context.newPage()
    await watch(page, new URL(url).origin, problems)
    await page.goto(url)
    const result = await visit(page)
    const left = problems.filter((problem) => !options.allow?.some((pattern) => pattern.test(problem)))
    if (left.length > 0) throw new Error(`the page was not clean:\n${left.join('\n')}`)
    return result
  } finally {
    await context.close()
  }
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
