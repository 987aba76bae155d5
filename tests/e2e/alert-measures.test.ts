/** The dialog of a rule that compares a measure, in a browser: its back-test, noise, silence, and hostile names. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  recent,
  waitForHeading,
} from './pages-actions.ts'

let org: Organization
let key: string
beforeAll(async () => {
  org = await newOrganization()
  key = org.key
}, 120_000)
afterAll(closeBrowser)

const hourMs = 3_600_000
const dialog = (page: Page) => page.getByRole('dialog')
const backtest = (page: Page) => dialog(page).getByRole('region', { name: 'Back-test' })
const row = (page: Page, name: RegExp) =>
  page.getByRole('region', { name: 'Alert rules', exact: true }).getByRole('row', { name })
/** The back-test of a filter that is not valid yet. */
const wrongFilter = { allow: [/400 \(Bad Request\).*backtest/] }
const hostile = '<img src=x onerror=alert(1)> \u202e"|`'

async function openDialog(page: Page): Promise<void> {
  await waitForHeading(page, 'Settings')
  await page.getByRole('button', { name: 'Add alert rule' }).click()
  await dialog(page).getByLabel('Name').waitFor()
}

async function addEndpoint(page: Page): Promise<void> {
  await waitForHeading(page, 'Settings')
  await page.getByRole('button', { name: 'Add endpoint' }).first().click()
  await dialog(page).getByLabel('URL').fill('http://127.0.0.1:9/in')
  await dialog(page).getByLabel('Label').fill('Chat')
  await dialog(page).getByRole('button', { name: 'Add endpoint' }).click()
  await page.getByRole('button', { name: 'Done, I saved it' }).click()
}

/** Ten days with 5 events per hour of two agents, and three hours with many. */
async function history(): Promise<void> {
  const middle = Math.floor(Date.now() / hourMs) * hourMs - 31.5 * 60_000 // of the last whole hour
  const events = Array.from({ length: 240 }, (_, hour) =>
    Array.from({ length: hour % 80 === 40 ? 60 : 5 }, (__, n) => {
      const occurredAt = new Date(middle - hour * hourMs - n * 1_000).toISOString()
      return recent(`h${hour}-${n}`, { occurredAt, agent: { vendor: n % 2 === 0 ? 'OpenAI' : hostile } })
    }),
  ).flat()
  for (let n = 0; n < events.length; n += 1_000) await send(org.url, key, events.slice(n, n + 1_000))
}

test('a rule is tested on the past while it is edited, saved, silenced and edited again', async () => {
  await withOwner(
    `${org.url}/settings/webhooks`,
    async (page) => {
      await addEndpoint(page)
      await openDialog(page)
      await backtest(page).getByText('There are no events to test the rule on.').waitFor()
      await page.keyboard.press('Escape')
      await history()
      await openDialog(page)
      await dialog(page).getByLabel('Name').fill('Busy hours')
      await dialog(page).getByLabel('Threshold').fill('20')
      await backtest(page).getByText('Would have fired 3 times').waitFor()
      const incidents = backtest(page).getByRole('listitem')
      expect(await incidents.allInnerTexts()).toEqual(Array(3).fill(expect.stringMatching(/\n1 hour\n60$/)))
      expect(await backtest(page).getByRole('img').getAttribute('aria-label')).toMatch(/highest 60, 3 alerts/)
      await dialog(page).getByLabel('Threshold').fill('4')
      await backtest(page)
        .getByText(/Would have fired \d+ time/)
        .waitFor()
      await dialog(page).getByLabel('For each').selectOption('vendor')
      await dialog(page).getByLabel('Threshold').fill('2')
      await dialog(page).getByLabel('Minimum events (ignored below this)').fill('0')
      await dialog(page).getByLabel('Over').selectOption('5')
      await backtest(page).getByText('Consider a higher threshold or a longer wait.').waitFor()
      await expectAccessibleInBothThemes(dialog(page))

      await dialog(page).getByLabel('Measure').selectOption('share')
      await dialog(page).getByLabel('Share of events with').fill('colour:red')
      await backtest(page)
        .getByText(/of\.colour|unknown field/)
        .waitFor()
      await dialog(page).getByLabel('Share of events with').fill('outcome:error')
      await dialog(page).getByLabel('Over').selectOption('60')
      await dialog(page).getByText('Waits and missing data').click()
      await dialog(page).getByLabel('Pending for (minutes)').fill('10')
      await dialog(page).getByLabel('Events', { exact: true }).fill(`vendor:${hostile}\nvendor:OpenAI`)
      await dialog(page).getByRole('button', { name: 'Add alert rule' }).click()
      await row(
        page,
        /Busy hours share of events with outcome:error above 20 % in 1 hour, by vendor, for 10 minutes, only vendor/,
      ).waitFor()

      await row(page, /Busy hours/)
        .getByRole('button', { name: 'Silence' })
        .click()
      await dialog(page).getByLabel('Silence for').selectOption('8')
      await dialog(page).getByRole('button', { name: 'Silence' }).click()
      await row(page, /silenced until/).waitFor()
      await row(page, /Busy hours/)
        .getByRole('button', { name: 'Edit' })
        .click()
      expect(await dialog(page).getByLabel('Events', { exact: true }).inputValue()).toBe(
        [`vendor:${hostile}`, 'vendor:OpenAI'].join('\n'),
      )
      await dialog(page).getByLabel('Alert when it').selectOption('change')
      await backtest(page).getByText('Less than two weeks of events are stored to compare with.').waitFor()
      await dialog(page).getByRole('button', { name: 'Save' }).click()
      await row(
        page,
        /share of events with outcome:error changes beyond 4 deviations of past weeks in 1 hour/,
      ).waitFor()
    },
    wrongFilter,
  )
}, 120_000)

test('on a phone the dialog fits, and no script in a name runs', async () => {
  await withOwner(
    `${org.url}/settings/webhooks`,
    async (page) => {
      await openDialog(page)
      await dialog(page).getByLabel('For each').selectOption('vendor')
      await dialog(page).getByLabel('Threshold').fill('10')
      await backtest(page).getByRole('listitem').first().waitFor()
      expect(await backtest(page).getByText('img src').count()).toBeGreaterThan(0)
      await expectNoSidewaysScroll(page)
      const { width } = (await dialog(page).boundingBox())!
      expect(width).toBeLessThanOrEqual(390)
      await expectAccessibleInBothThemes(dialog(page))
    },
    { viewport: { width: 390, height: 844 } },
  )
}, 90_000)
