/** Settings → Data → Erase: counted before, asked twice, watched while it goes; for owners alone. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { ingestKey, ownerEnv, send, signIn, signInAs } from './dashboard-actions.ts'
import { expectAccessibleInBothThemes, recent } from './pages-actions.ts'

setDefaultTimeout(60_000)

const hostile = '<b>ann</b>@"example".com'
let appliance: Appliance
let key: string

beforeAll(async () => {
  appliance = await startAppliance({ env: ownerEnv })
  key = await ingestKey(appliance)
  const of = (prefix: string, subject: string, count: number) =>
    Array.from({ length: count }, (_, n) =>
      recent(`${prefix}${n}`, { sessionId: `ses_${prefix}`, metadata: { subject } }),
    )
  await send(appliance.url, key, [...of('a', hostile, 30), ...of('b', 'bob@example.com', 12)])
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

async function ask(page: Page, kind: 'Identity' | 'Session', value: string): Promise<void> {
  await page.getByRole('button', { name: 'Erase a session or an identity' }).click()
  await page.getByLabel('What').selectOption(kind)
  await page.getByLabel('Exactly this id or identity').fill(value)
  await page.getByRole('button', { name: 'Find its events' }).click()
  await page.getByRole('dialog', { name: 'Erase for good' }).waitFor()
}

const onData = (visit: (page: Page) => Promise<void>, more = {}) =>
  withPage(
    `${appliance.url}/settings/data`,
    async (page) => {
      await signIn(page)
      await page.goto(`${appliance.url}/settings/data`)
      await page.getByText('Events kept', { exact: true }).waitFor()
      await visit(page)
    },
    more,
  )

const kept = (page: Page) => page.locator('dt:text-is("Events kept") + dd').textContent()

test('says how many events go, erases on the second word alone, and tells what it did', async () => {
  await onData(async (page) => {
    expect(await kept(page)).toBe('42')
    await ask(page, 'Identity', 'Bob@example.com')
    await page.getByText('No event that is kept here carries it').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByRole('dialog').count()).toBe(0)

    await ask(page, 'Identity', hostile)
    await page.getByText('30 events of it go').waitFor()
    expect(await page.getByRole('dialog').locator('strong').textContent()).toBe(hostile)
    await expectAccessibleInBothThemes(page)
    await picture(page, 'erase-asks')
    await page.keyboard.press('Escape')
    expect(await kept(page)).toBe('42')

    await ask(page, 'Identity', hostile)
    await page.getByRole('button', { name: 'Erase 30 events' }).click()
    await page.getByText('Erased 30 events, 0 deliveries and 0 samples of an identity').waitFor()
    await page.getByText('Out of reach: ').waitFor()
    await page.locator('dt:text-is("Events kept") + dd:text-is("12")').waitFor()
    await page.getByText('Out of reach: ').scrollIntoViewIfNeeded()
    await expectAccessibleInBothThemes(page)
    await picture(page, 'erase-done')
  })
})

test('on a phone, of a session', async () => {
  const more = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' as const }
  await onData(async (page) => {
    await ask(page, 'Session', 'ses_b')
    await picture(page, 'erase-phone')
    await page.getByRole('button', { name: 'Erase 12 events' }).click()
    await page.getByText('Erased 12 events, 0 deliveries and 0 samples of a session').waitFor()
    await picture(page, 'erase-phone-done')
  }, more)
})

test('who is no owner is not offered it', async () => {
  const made = await appliance.cli('account', 'create', '--email=bo@example.com', '--role=admin', '--json')
  const { link } = JSON.parse(made.stdout) as { link: string }
  await withPage(link, async (page) => {
    const password = 'another horse battery'
    await page.getByLabel('New password').fill(password)
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('The password is changed').waitFor()
    await signInAs(page, 'bo@example.com', password)
    await page.locator('.shell').waitFor()
    await page.goto(`${appliance.url}/settings/data`)
    await page.getByText('Limits are for owners').waitFor()
    expect(await page.getByRole('button', { name: 'Erase a session or an identity' }).count()).toBe(0)
  })
})
