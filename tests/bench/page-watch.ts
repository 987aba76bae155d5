/** Watches a page of the dashboard from a click to the frame in which its content is complete. */
import type { CDPSession, Page } from 'playwright'

/** In the order of the navigation. The start page comes last. */
export const pageNames = [
  'Detect',
  'Auth',
  'Authz',
  'WebMCP Tools',
  'Knaph',
  'Logs',
  'Sessions',
  'Analytics',
  'Webhooks',
  'Settings',
]

/** The content of a page when it no longer changes. */
export interface Rest {
  title: string
  headlines: string
  inView: { [selector: string]: number } // in the first view
  all: { [selector: string]: number }
  nodes: number
}

export interface Change {
  shownMs: number // painted: heading, headline numbers and the content of the first view
  wholeMs: number // painted: everything
  workMs: number // work of the main thread until the page was idle
}

const counted = ['canvas', 'h2', '.bars li', 'tbody tr', '.event-row']

const sessions = new WeakMap<Page, CDPSession>()

/** Installs the watcher in the page and connects to the browser's performance counters. */
export async function prepare(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  sessions.set(page, session)
  await page.evaluate(() => {
    let changedMs = performance.now()
    const look = { childList: true, subtree: true, characterData: true }
    new MutationObserver(() => (changedMs = performance.now())).observe(document.body, look)
    Reflect.set(window, 'quietMs', () => performance.now() - changedMs)
  })
}

/** Resolves when the page has not changed for a while. */
export async function waitForRest(page: Page): Promise<void> {
  await page.waitForFunction(() => (Reflect.get(window, 'quietMs') as () => number)() > 350, null, {
    polling: 50,
  })
}

export async function atRest(page: Page, title: string): Promise<Rest> {
  await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor()
  await page.waitForFunction(() => (Reflect.get(window, 'quietMs') as () => number)() > 1_500, null, {
    polling: 100, // at every frame it would cost as much as a page
  })
  return page.evaluate(
    ({ title, counted }) => {
      const number = (selector: string, fits: (element: Element) => boolean) =>
        Array.from(document.querySelectorAll(`main ${selector}`)).filter(fits).length
      const inView = (element: Element) => element.getBoundingClientRect().top < window.innerHeight
      return {
        title,
        headlines: document.querySelector('.headlines')?.textContent ?? '',
        inView: Object.fromEntries(counted.map((selector) => [selector, number(selector, inView)])),
        all: Object.fromEntries(counted.map((selector) => [selector, number(selector, () => true)])),
        nodes: document.querySelectorAll('main *').length,
      }
    },
    { title, counted },
  )
}

async function workedMs(page: Page): Promise<number> {
  const { metrics } = (await sessions.get(page)?.send('Performance.getMetrics')) ?? { metrics: [] }
  return 1_000 * (metrics.find((metric) => metric.name === 'TaskDuration')?.value ?? 0)
}

/** Starts at the click made by `act`. Each frame only counts elements, which costs almost nothing. */
export async function watched(page: Page, restState: Rest, act: () => Promise<void>): Promise<Change> {
  await page.evaluate((expectedRest) => {
    const holds = (selectorCounts: { [selector: string]: number }): boolean =>
      Object.entries(selectorCounts).every(
        ([selector, leastCount]) => document.querySelectorAll(`main ${selector}`).length >= leastCount,
      )
    const isTitled = () => document.querySelector('h1')?.textContent === expectedRest.title
    const saysIt = () => (document.querySelector('.headlines')?.textContent ?? '') === expectedRest.headlines
    const result = new Promise<{ shownMs: number; wholeMs: number }>((resolve, reject) => {
      const onClick = ({ timeStamp }: Event): void => {
        let shownMs = 0
        const frame = (): void => {
          const sinceMs = performance.now() - timeStamp
          const isShown = isTitled() && saysIt() && holds(expectedRest.inView)
          const isWhole = isShown && holds(expectedRest.all)
          if (sinceMs > 10_000)
            reject(new Error(`${expectedRest.title} did not become ${JSON.stringify(expectedRest)}`))
          if (!isWhole) requestAnimationFrame(frame)
          if (!isShown) return
          // A message is handled after the frame was painted.
          const channel = new MessageChannel()
          channel.port1.onmessage = () => {
            const nowMs = performance.now() - timeStamp
            if (shownMs === 0) shownMs = nowMs
            if (isWhole) resolve({ shownMs, wholeMs: nowMs })
          }
          channel.port2.postMessage(0)
        }
        requestAnimationFrame(frame)
      }
      window.addEventListener('click', onClick, { capture: true, once: true })
    })
    Reflect.set(window, 'change', result)
  }, restState)
  const beforeMs = await workedMs(page)
  await act()
  const changeTimes = await page.evaluate(
    () => Reflect.get(window, 'change') as Promise<{ shownMs: number; wholeMs: number }>,
  )
  await waitForRest(page)
  return { ...changeTimes, workMs: (await workedMs(page)) - beforeMs }
}
