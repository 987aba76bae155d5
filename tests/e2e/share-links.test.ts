/** Share links in Chromium: created on Analytics and Logs, opened without a cookie, listed and revoked in Settings. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { ingestKey, send, startWithOwner, withOwner } from './dashboard-actions.ts'
import {
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  goInside,
  recent,
  waitForHeading,
} from './pages-actions.ts'

let appliance: Appliance

const hostile = '<b>bold</b>\u202e'

beforeAll(async () => {
  appliance = await startWithOwner({ args: ['--log-level', 'debug'] })
  const events = Array.from({ length: 120 }, (_, index) =>
    recent(
      `event-${index}`,
      {
        type: ['tool.executed', 'agent.requested', 'authz.evaluated'][index % 3],
        tool: 'checkout.pay',
        outcome: index % 4 === 0 ? 'blocked' : 'success',
        sessionId: 'hidden-session',
        agent: { class: 'dom', vendor: index % 2 === 0 ? 'OpenAI' : hostile },
        metadata: { subject: 'hidden-subject', page: '/checkout' },
      },
      index * 60_000,
    ),
  )
  const baseEvent = { type: 'agent.detected', agent: { class: 'dom', vendor: 'OpenAI' } }
  const old = recent('event-old', baseEvent, 3 * 24 * 3_600_000) // changes are compared with it
  await send(appliance.url, await ingestKey(appliance), [...events, old])
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

/** Opens a link in a browser that knows nobody, and returns every request that the page made. */
function asAnybody<T>(
  url: string,
  visit: (page: Page, requests: string[]) => Promise<T>,
  allow: RegExp[] = [],
): Promise<T> {
  const requests: string[] = []
  return withPage(url, (page) => visit(page, requests), { requests, allow })
}

async function createdLink(page: Page): Promise<string> {
  const url = (await page.getByLabel('Share link').innerText()).trim()
  expect(url).toMatch(/\/share\/[A-Za-z0-9_-]{22}$/)
  await page.getByRole('button', { name: 'Done, I saved it' }).click()
  return url
}

test('a page is shared with chosen panels, shows nothing else without a cookie, and ends when it is revoked', async () => {
  await withOwner(`${appliance.url}/analytics?range=24h`, async (page) => {
    await waitForHeading(page, 'Analytics')
    await page.getByRole('button', { name: 'Share', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Share by link' })
    await dialog.getByLabel('Title of the page').fill('Agents of the shop')
    for (const panel of ['Pages', 'Tools', 'Protocols', 'Rules']) await dialog.getByLabel(panel).uncheck()
    await dialog.getByLabel('Ends after').selectOption('30 days')
    await dialog.getByRole('button', { name: 'Create link' }).click()
    const url = await createdLink(page)

    await asAnybody(url, async (shared, requests) => {
      await shared.getByRole('heading', { name: 'Agents of the shop' }).waitFor()
      const text = await shared.locator('main').innerText()
      for (const part of [
        'Requests\n40',
        'success',
        'blocked',
        'tool.executed',
        'OpenAI',
        '<b>bold</b>\\u{202e}',
      ])
        expect(text).toContain(part)
      for (const part of ['hidden-', 'checkout.pay', '/checkout'])
        expect(await shared.content()).not.toContain(part)
      expect(await shared.locator('svg.shared-chart rect').count()).toBeGreaterThan(0)
      expect(requests.filter((path) => path.startsWith('/api') || path.endsWith('.js'))).toEqual([])
      expect(await shared.context().cookies()).toEqual([])
      expect(await shared.locator('a, button, form, script, iframe').count()).toBe(0)
      await expectAccessibleInBothThemes(shared)
      await shared.setViewportSize({ width: 390, height: 800 })
      await expectNoSidewaysScroll(shared)
      const answer = await shared.goto(appliance.url)
      expect(answer?.status()).toBe(200)
      await shared.getByRole('button', { name: 'Sign in' }).waitFor() // the link signed nobody in
    })

    await goInside(page, '/settings/share-links')
    const row = page
      .getByRole('region', { name: 'Share links' })
      .getByRole('row', { name: 'Agents of the shop' })
    expect((await row.innerText()).split(/\s*\t\s*|\n/).filter(Boolean)).toEqual(
      expect.arrayContaining(['open', '1']),
    )
    await row.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('button', { name: 'Revoke link' }).click()
    await row.getByText('revoked', { exact: true }).waitFor()
    const atNothing = async (shared: Page): Promise<void> => {
      await shared.getByRole('heading', { name: 'Link not found' }).waitFor()
      expect(await shared.content()).not.toContain('Agents of the shop')
    }
    await asAnybody(url, atNothing, [/status of 404/])
    expect(appliance.stderr()).not.toContain(url.split('/').at(-1)!)
  })
}, 90_000)

test('a view of Logs is shared with its events where they were chosen', async () => {
  await withOwner(`${appliance.url}/logs?outcome=blocked`, async (page) => {
    await page.getByRole('button', { name: 'Share', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Share by link' })
    await dialog.getByLabel('Title of the page').fill('Blocked')
    await dialog.getByLabel('The newest 50 events').check()
    await dialog.getByRole('button', { name: 'Create link' }).click()
    const url = await createdLink(page)
    await asAnybody(url, async (shared) => {
      await shared.getByRole('heading', { name: 'Newest events' }).waitFor()
      // Beyond the edge of a phone no name is broken into lines.
      await shared.setViewportSize({ width: 390, height: 800 })
      const rows = shared.locator('tbody tr')
      const heights = await rows.evaluateAll((elements) =>
        elements.map((row) => row.getBoundingClientRect().height),
      )
      expect(Math.max(...heights)).toBeLessThan(40)
      expect(await shared.locator('tbody tr').count()).toBe(30)
      expect(await shared.content()).not.toContain('hidden-')
      await expectAccessibleInBothThemes(shared)
    })
  })
}, 60_000)

/** Fills in the dialog of the page and returns the link. */
async function share(page: Page, title: string, choose: (dialog: Locator) => Promise<void>): Promise<string> {
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Share by link' })
  await dialog.getByLabel('Title of the page').fill(title)
  await choose(dialog)
  await dialog.getByRole('button', { name: 'Create link' }).click()
  return createdLink(page)
}

/** A link that is refused in the dialog. */
const refused = { allow: [/400 \(Bad Request\).*share-links/] }

test('a query of Explore is shared as a chart and a table, subjects only where they were chosen', async () => {
  await withOwner(
    `${appliance.url}/analytics/explore?range=24h&filter=outcome:success`,
    async (page) => {
      await page.getByText('90 stored events.').waitFor()
      const url = await share(page, 'Successful', async (dialog) => {
        await dialog.getByText('It shows the events of 1 filter').waitFor()
      })
      await asAnybody(url, async (shared, requests) => {
        await shared.getByRole('heading', { name: 'Events by vendor', exact: true }).waitFor()
        expect(await shared.locator('thead th').allInnerTexts()).toEqual(['Vendor', 'Events', 'Share'])
        await shared.getByText(/Updated \d+ \w+ \d{4}, .* This link ends on \d+ \w+ \d{4}\./).waitFor()
        expect(await shared.locator('tbody tr').allInnerTexts()).toEqual(
          expect.arrayContaining([expect.stringMatching(/^<b>bold<\/b>\\u\{202e\}\s+60\s+66\.7 %$/)]),
        )
        expect(await shared.locator('svg.shared-chart rect').count()).toBeGreaterThan(0)
        expect(requests.filter((path) => path.startsWith('/api') || path.endsWith('.js'))).toEqual([])
        expect(await shared.locator('a, button, form, script, iframe').count()).toBe(0)
        await expectAccessibleInBothThemes(shared)
        await shared.setViewportSize({ width: 390, height: 800 })
        await expectNoSidewaysScroll(shared)
      })
      await goInside(page, '/analytics/explore?range=24h&measure=sessions&by=subject')
      await page.getByText('distinct sessions.').waitFor()
      await page.getByRole('button', { name: 'Share', exact: true }).click()
      const dialog = page.getByRole('dialog', { name: 'Share by link' })
      await dialog.getByLabel('Title of the page').fill('Subjects')
      await dialog.getByRole('button', { name: 'Create link' }).click()
      await dialog.getByText('The query would show subjects or sessions.').waitFor()
      await dialog.getByLabel('Subjects and session ids').check()
      await dialog.getByRole('button', { name: 'Create link' }).click()
      await asAnybody(await createdLink(page), async (shared) => {
        await shared.getByRole('heading', { name: 'Sessions by identity', exact: true }).waitFor()
        expect(await shared.content()).toContain('hidden-subject')
        await expectAccessibleInBothThemes(shared)
      })
    },
    refused,
  )
}, 60_000)

test('Overview is shared, with what changed where that was chosen', async () => {
  await withOwner(`${appliance.url}/overview`, async (page) => {
    await waitForHeading(page, 'Overview')
    const url = await share(page, 'Our week', (dialog) =>
      dialog.getByLabel('What changed in the last 24 hours').check(),
    )
    await asAnybody(url, async (shared) => {
      await shared.getByRole('heading', { name: /^Changed since/ }).waitFor()
      const text = await shared.locator('main').innerText()
      for (const part of [
        'Our week',
        'Requests\n40',
        'Tool calls\n40',
        'New tool',
        'checkout.pay was called for the first time',
      ])
        expect(text).toContain(part)
      expect(await shared.content()).not.toContain('hidden-')
      await expectAccessibleInBothThemes(shared)
      await shared.setViewportSize({ width: 390, height: 800 })
      await expectNoSidewaysScroll(shared)
    })
    await goInside(page, '/settings/share-links')
    await page.getByText('Overview, 3 panels').waitFor()
    await page.getByText('Explore, subjects and sessions').waitFor()
  })
}, 60_000)

test('only a site that the link names can show it in a frame', async () => {
  const outer = Bun.serve({
    port: 0,
    fetch: (request) => {
      const framed = new URL(request.url).searchParams.get('url')!
      return new Response(`<iframe src="${framed}"></iframe>`, { headers: { 'content-type': 'text/html' } })
    },
  })
  try {
    await withOwner(`${appliance.url}/analytics?range=24h`, async (page) => {
      const share = async (origins: string): Promise<string> => {
        await page.getByRole('button', { name: 'Share', exact: true }).click()
        await page.getByLabel('Title of the page').fill('Framed')
        await page.getByLabel('Sites that may show it in a frame').fill(origins)
        await page.getByRole('button', { name: 'Create link' }).click()
        return createdLink(page)
      }
      const origin = `http://localhost:${outer.port}`
      const shows = (url: string) =>
        asAnybody(
          `${origin}/?url=${encodeURIComponent(url)}`,
          async (shared) => {
            await shared.waitForLoadState('networkidle')
            return shared.frameLocator('iframe').getByRole('heading', { name: 'Framed' }).count()
          },
          [/request to another host: GET \S+\/(share|assets)\//, /frame-ancestors/],
        )
      expect(await shows(await share(`${origin}, https://wiki.example.com/`))).toBe(1)
      expect(await shows(await share(''))).toBe(0)
    })
  } finally {
    await outer.stop(true)
  }
}, 60_000)
