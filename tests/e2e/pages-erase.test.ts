/** Settings → Data → Erase: shows the count, confirms twice, shows progress; for owners only. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright'
import { cli } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import { expectAccessibleInBothThemes, recent } from './pages-actions.ts'

setDefaultTimeout(60_000)

const hostile = '<b>ann</b>@"example".com'
let org: Organization
let key: string

beforeAll(async () => {
  org = await newOrganization()
  key = org.key
  const subjectEvents = (prefix: string, subject: string, count: number) =>
    Array.from({ length: count }, (_, n) =>
      recent(`${prefix}${n}`, { sessionId: `ses_${prefix}`, metadata: { subject } }),
    )
  await send(org.url, key, [...subjectEvents('a', hostile, 30), ...subjectEvents('b', 'bob@example.com', 12)])
}, 120_000)
afterAll(closeBrowser)

async function ask(page: Page, kind: 'Identity' | 'Session', value: string): Promise<void> {
  await page.getByRole('button', { name: 'Erase a session or an identity' }).click()
  await page.getByLabel('Kind').selectOption(kind)
  await page.getByLabel('Exact session ID or identity').fill(value)
  await page.getByRole('button', { name: 'Count events' }).click()
  await page.getByRole('dialog', { name: 'Erase permanently' }).waitFor()
}

const onData = (visit: (page: Page) => Promise<void>, pageOptions = {}) =>
  withOwner(
    `${org.url}/settings/data`,
    async (page) => {
      await page.getByText('Stored events', { exact: true }).waitFor()
      await visit(page)
    },
    pageOptions,
  )

const storedEvents = (page: Page) => page.locator('dt:text-is("Stored events") + dd').textContent()

test('shows the number of events, erases only after confirmation, and shows the result', async () => {
  await onData(async (page) => {
    expect(await storedEvents(page)).toBe('42')
    await ask(page, 'Identity', 'Bob@example.com')
    await page.getByText('No stored event matches').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByRole('dialog').count()).toBe(0)

    await ask(page, 'Identity', hostile)
    await page.getByText('30 events are erased').waitFor()
    expect(await page.getByRole('dialog').locator('strong').textContent()).toBe(hostile)
    await expectAccessibleInBothThemes(page.getByRole('dialog'))
    await picture(page, 'erase-asks')
    await page.keyboard.press('Escape')
    expect(await storedEvents(page)).toBe('42')

    await ask(page, 'Identity', hostile)
    await page.getByRole('button', { name: 'Erase 30 events' }).click()
    await page.getByText('Erased 30 events, 0 deliveries and 0 samples of an identity').waitFor()
    await page.getByText('Not erased: ').waitFor()
    await page.locator('dt:text-is("Stored events") + dd:text-is("12")').waitFor()
    await page.getByText('Not erased: ').scrollIntoViewIfNeeded()
    await expectAccessibleInBothThemes(page.locator('.settings-section', { hasText: 'Not erased: ' }))
    await picture(page, 'erase-done')
  })
})

test('erases a session on a phone', async () => {
  const pageOptions = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' as const }
  await onData(async (page) => {
    await ask(page, 'Session', 'ses_b')
    await picture(page, 'erase-phone')
    await page.getByRole('button', { name: 'Erase 12 events' }).click()
    await page.getByText('Erased 12 events, 0 deliveries and 0 samples of a session').waitFor()
    await picture(page, 'erase-phone-done')
  }, pageOptions)
})

test('only owners see the erase button', async () => {
  const admin = { email: 'bo@example.com', password: 'another horse battery' }
  const args = [
    'account',
    'create',
    '--email',
    admin.email,
    '--role',
    'admin',
    '--org',
    org.slug,
    '--password-stdin',
  ]
  expect((await cli(args, { dataDir: org.appliance.dataDir, stdin: admin.password })).code).toBe(0)
  const seesNoButton = async (page: Page): Promise<void> => {
    await page.getByText('Only owners can change limits').waitFor()
    expect(await page.getByRole('button', { name: 'Erase a session or an identity' }).count()).toBe(0)
  }
  await withPage(`${org.url}/settings/data`, seesNoButton, { as: admin })
})
