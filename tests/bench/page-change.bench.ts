/** Measures the time from a click in the navigation to the painted page, over a million events. */
import type { BrowserContext, Page } from 'playwright'
import { ownerEnv, signIn } from '../e2e/dashboard-actions.ts'
import { startAppliance } from '../support/binary.ts'
import { browser, closeBrowser } from '../support/browser.ts'
import { atRest, type Change, pageNames, prepare, type Rest, waitForRest, watched } from './page-watch.ts'
import { fillPages } from './page-traffic.ts'
import { machine, recordTable, table } from './report.ts'

export interface PageChanges {
  events: number
  pages: { name: string; first: Change[]; later: Change[]; floorMs: number[]; nodes: number }[]
}

/** `firsts` fresh profiles open each page for the first time; the last one then visits all pages `laters` times. */
async function measurePages(url: string, firsts: number, laters: number, names: string[]) {
  const rests = await learnRests(url, names)
  const measured = new Map(names.map((name) => [name, { first: [], later: [], floorMs: [] } as Measured]))
  const go = async (page: Page, name: string): Promise<Change> => {
    // The range and its numbers change with the hour.
    if (rests.hour !== hourNow()) Object.assign(rests, await learnRests(url, names))
    return change(page, name, rests.of.get(name) as Rest)
  }
  for (let round = 0; round < firsts; round++) {
    const context = await (await browser()).newContext({ storageState: rests.storageState, viewport })
    const page = await context.newPage()
    // The last page of the round is the start page.
    await page.goto(`${url}/settings`)
    await prepare(page)
    await waitForRest(page)
    for (const [name, { first }] of measured) first.push(await go(page, name))
    for (let again = 0; round === firsts - 1 && again < laters; again++) {
      for (const [name, { later, floorMs }] of measured) {
        later.push(await go(page, name))
        floorMs.push(await bare(page))
      }
    }
    await context.close()
  }
  return [...measured].map(([name, measures]) => ({
    name,
    nodes: rests.of.get(name)?.nodes ?? 0,
    ...measures,
  }))
}

type Measured = Pick<PageChanges['pages'][number], 'first' | 'later' | 'floorMs'>

const hourNow = (): number => Math.floor(Date.now() / 3_600_000)

/** The complete content of these pages, in this hour. */
async function learnRests(url: string, names: string[]) {
  const { context, page } = await signedIn(url)
  const restsByName = new Map<string, Rest>()
  const hour = hourNow()
  for (const name of names) {
    await link(page, name).click()
    restsByName.set(name, await atRest(page, name))
  }
  const storageState = await context.storageState()
  await context.close()
  return { hour, of: restsByName, storageState }
}

const viewport = { width: 1440, height: 900 }

async function signedIn(url: string): Promise<{ context: BrowserContext; page: Page }> {
  const context = await (await browser()).newContext({ viewport })
  // Without prefetching, whose work is not part of a page's complete content.
  await context.addInitScript(() => {
    window.requestIdleCallback = () => 0
  })
  const page = await context.newPage()
  await page.goto(`${url}/settings`)
  await signIn(page)
  await prepare(page)
  await waitForRest(page)
  return { context, page }
}

const link = (page: Page, name: string) => page.locator('nav.wide').getByRole('link', { name, exact: true })

async function change(page: Page, name: string, restState: Rest): Promise<Change> {
  const pageChange = await watched(page, restState, () => link(page, name).click())
  await waitForRest(page)
  return pageChange
}

/** The floor: inserts the nodes of the current page at a click with one statement, until they are painted. */
async function bare(page: Page): Promise<number> {
  await page.evaluate(() => {
    const main = document.querySelector('main')
    if (!main) throw new Error('there is no page')
    const copy = main.cloneNode(true)
    const button = document.createElement('button')
    button.id = 'floor'
    button.textContent = 'floor'
    button.style.cssText = 'position:fixed;bottom:0;right:0;z-index:9'
    const result = new Promise<number>((resolve) => {
      button.addEventListener('click', (event) => {
        main.after(copy)
        requestAnimationFrame(() => {
          const channel = new MessageChannel()
          channel.port1.onmessage = () => resolve(performance.now() - event.timeStamp)
          channel.port2.postMessage(0)
        })
      })
    })
    Reflect.set(
      window,
      'floor',
      result.finally(() => {
        copy.parentNode?.removeChild(copy)
        button.remove()
        main.style.display = ''
      }),
    )
    main.style.display = 'none'
    document.body.append(button)
  })
  await page.locator('#floor').click()
  return page.evaluate(() => Reflect.get(window, 'floor') as Promise<number>)
}

export async function pageChangeBench(
  events: number,
  firsts: number,
  laters: number,
  names = pageNames,
): Promise<PageChanges> {
  const server = await startAppliance({ env: ownerEnv, args: ['--rate-limit-ingest', 'off'] })
  try {
    await fillPages(server, events)
    return { events, pages: await measurePages(server.url, firsts, laters, names) }
  } finally {
    await closeBrowser()
    await server.stop()
  }
}

function quantileAt(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
}

export function pageChangeTable({ events, pages }: PageChanges): string {
  const shown = (changes: Change[]) => changes.map((pageChange) => pageChange.shownMs)
  return table(
    [
      `ms after the click, ${events.toLocaleString('en-US')} events`,
      'first p50',
      'p95',
      'later p50',
      'p95',
      'whole p50',
      'p95',
      'work p50',
      'floor p50',
      'nodes',
    ],
    pages.map(({ name, first, later, floorMs, nodes }) => [
      name,
      quantileAt(shown(first), 0.5),
      quantileAt(shown(first), 0.95),
      quantileAt(shown(later), 0.5),
      quantileAt(shown(later), 0.95),
      ...[0.5, 0.95].map((share) =>
        quantileAt(
          later.map((pageChange) => pageChange.wholeMs),
          share,
        ),
      ),
      quantileAt(
        later.map((pageChange) => pageChange.workMs),
        0.5,
      ),
      quantileAt(floorMs, 0.5),
      nodes,
    ]),
  )
}

const legend = `first: the code of the page was not used yet; shown: heading, headline numbers and all charts and rows
of the first view are painted. whole: so are all below it. work: what the main thread did until the page rested.
floor: the same nodes put into the page by one line, painted.`

if (import.meta.main) {
  const isFull = process.argv.includes('--full')
  const text = pageChangeTable(
    await pageChangeBench(isFull ? 1_000_000 : 100_000, isFull ? 8 : 3, isFull ? 15 : 8),
  )
  process.stdout.write(`${machine()}\n\n${text}\n\n${legend}\n`)
  if (isFull) recordTable('Page change', `${text}\n\n${legend}`)
}
