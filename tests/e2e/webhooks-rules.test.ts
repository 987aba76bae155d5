/** Alert rules in a real browser: created, edited and deleted in Settings; open alerts are shown on every page. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { ingestKey, owner, send, startWithOwner, withOwner } from './dashboard-actions.ts'
import {
  waitForHeading,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  recent,
  goInside,
} from './pages-actions.ts'

let appliance: Appliance
let receiver: Receiver
let key: string
beforeAll(async () => {
  receiver = await startReceiver()
  const args = ['--webhook-allow', '127.0.0.0/8', '--dispatch-cron', '* * * * * *']
  appliance = await startWithOwner({ args })
  key = await ingestKey(appliance)
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  await receiver[Symbol.asyncDispose]()
})

const dialog = (page: Page) => page.getByRole('dialog')
const row = (page: Page, name: RegExp) =>
  page.getByRole('region', { name: 'Alert rules', exact: true }).getByRole('row', { name })
const alert = (page: Page, text: string) => page.locator('.data-table tbody tr').filter({ hasText: text })
const bar = (page: Page) => page.locator('.notice-bar')
const types = () =>
  receiver.received('/ok/alerts').map(({ body }) => (JSON.parse(body) as { type: string }).type)

const events = (from: number, count: number, outcome: string) =>
  send(
    appliance.url,
    key,
    Array.from({ length: count }, (_, n) => recent(`r${from + n}`, { outcome })),
  )

async function acknowledge(page: Page): Promise<void> {
  await alert(page, 'High blocked share').getByRole('button', { name: 'Acknowledge' }).click()
  await alert(page, 'High blocked share').getByText('acknowledged', { exact: true }).waitFor()
  await page.getByText('Alert acknowledged.').waitFor()
  await page.getByRole('link', { name: 'Logs' }).first().click()
  await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
  expect(await bar(page).count()).toBe(0) // acknowledged alerts leave the bar
}

test('a rule is added and edited in Settings; its alert opens, is shown on every page, and resolves', async () => {
  await withOwner(`${appliance.url}/settings/webhooks`, async (page) => {
    await waitForHeading(page, 'Settings')
    await page.getByText('Add an endpoint before you create an alert rule.').waitFor()
    await page.getByRole('button', { name: 'Add endpoint' }).first().click()
    await dialog(page).getByLabel('URL').fill(`${receiver.url}/ok/alerts`)
    await dialog(page).getByLabel('Label').fill('Chat')
    await dialog(page).getByLabel('Types').fill('sdk.error')
    await dialog(page).getByLabel('Maximum events per message (1 to 100)').fill('7')
    await dialog(page).getByRole('button', { name: 'Add endpoint' }).click()
    await page.getByRole('button', { name: 'Done, I saved it' }).click()
    await page.getByRole('region', { name: 'Endpoints' }).getByRole('button', { name: 'Edit' }).click()
    expect(await dialog(page).getByLabel('Maximum events per message (1 to 100)').inputValue()).toBe('7')
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()

    await page.getByRole('button', { name: 'Add alert rule' }).click()
    await dialog(page).getByLabel('Alert on').selectOption('silence')
    await dialog(page).getByLabel('Minutes without events (1 to 10,080)').fill('45')
    await dialog(page).getByRole('button', { name: 'Add alert rule' }).click()
    await row(page, /Silence no events for 45 minutes Chat none open/).waitFor()
    await page.getByRole('button', { name: 'Add alert rule' }).click()
    await dialog(page).getByLabel('Alert on').selectOption('blocked_share')
    await dialog(page).getByLabel('Threshold (percent, last hour)').fill('12.5')
    await dialog(page).getByLabel('Minimum events (ignored below this)').fill('5')
    await expectAccessibleInBothThemes(dialog(page))
    await dialog(page).getByRole('button', { name: 'Add alert rule' }).click()
    await row(page, /more than 12\.5 % of events in the last hour are blocked, minimum 5 events/).waitFor()

    await events(1, 6, 'blocked')
    await receiver.wait('/ok/alerts', 1, 20_000)
    await page.reload()
    await row(page, /Blocked share .* 1 open/).waitFor()
    await bar(page).getByText('High blocked share: 100 % of 6 events in the last hour').waitFor()
    await expectAccessibleInBothThemes(bar(page))
    await page.getByRole('link', { name: 'Logs' }).first().click()
    await bar(page).getByRole('link', { name: 'View' }).click()
    await alert(page, 'High blocked share').getByText('open', { exact: true }).waitFor()
    expect(await bar(page).count()).toBe(0) // the page itself shows it
    await expectAccessibleInBothThemes(page.locator('.data-panel').filter({ hasText: 'Alerts' }))
    await acknowledge(page)

    await goInside(page, '/settings/webhooks')
    await row(page, /Blocked share/)
      .getByRole('button', { name: 'Edit' })
      .click()
    expect(await dialog(page).getByLabel('Threshold (percent, last hour)').inputValue()).toBe('12.5')
    await dialog(page).getByLabel('Threshold (percent, last hour)').fill('60')
    await dialog(page).getByRole('button', { name: 'Save' }).click()
    await row(page, /more than 60 % of events in the last hour/).waitFor()
    await events(101, 6, 'success')
    await receiver.wait('/ok/alerts', 2, 20_000)
    expect(types()).toEqual(['alert.opened', 'alert.resolved'])
    await goInside(page, '/webhooks')
    const closedAlert = alert(page, 'High blocked share')
    await closedAlert.getByText('resolved', { exact: true }).waitFor()
    await closedAlert.getByText(owner.email).waitFor()
    const [opened, acknowledged, resolved] = await closedAlert
      .locator('time')
      .evaluateAll((times) => times.map((time) => Date.parse(time.getAttribute('datetime') ?? '')))
    expect([opened! <= acknowledged!, acknowledged! < resolved!]).toEqual([true, true])
    await closedAlert.getByRole('link', { name: 'High blocked share' }).click()
    await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
    expect(new URL(page.url()).searchParams.get('outcome')).toBe('blocked')
    await goInside(page, '/logs')
    await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
    expect(await bar(page).count()).toBe(0)
  })
}, 120_000)

test('deleting an alert rule asks for confirmation, on a phone', async () => {
  await withOwner(
    `${appliance.url}/settings/webhooks`,
    async (page) => {
      await waitForHeading(page, 'Settings')
      await row(page, /^Silence/)
        .getByRole('button', { name: 'Delete' })
        .click()
      await dialog(page).getByRole('button', { name: 'Cancel' }).click()
      await row(page, /^Silence/)
        .getByRole('button', { name: 'Delete' })
        .click()
      await dialog(page).getByText('no events for 45 minutes').waitFor()
      await dialog(page).getByRole('button', { name: 'Delete alert rule' }).click()
      await row(page, /^Silence/).waitFor({ state: 'detached' })
      await expectNoSidewaysScroll(page)
      await page.reload()
      await row(page, /Blocked share/).waitFor()
      expect(await row(page, /^Silence/).count()).toBe(0)
    },
    { viewport: { width: 390, height: 844 } },
  )
}, 90_000)
