/** An organization requires a second factor: the switch in Settings, and how a member is led to set one up. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { owner, ownerEnv, signInAs, withOwner } from './dashboard-actions.ts'
import { goInside } from './pages-actions.ts'

let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance({ env: ownerEnv })
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

/** Through the dialog, which is open already. */
async function setUp(page: Page, password: string): Promise<void> {
  const dialog = page.getByRole('dialog')
  const seed = (await dialog.getByLabel('Setup key').innerText()).replaceAll(' ', '')
  await dialog
    .getByLabel('Code', { exact: true })
    .fill(new TOTP({ secret: Secret.fromBase32(seed) }).generate())
  await dialog.getByLabel('Your password').fill(password)
  await dialog.getByRole('button', { name: 'Turn on' }).click()
  await page.getByRole('list', { name: 'Recovery codes' }).waitFor()
  await page.getByRole('button', { name: 'Done, I saved them' }).click()
}

test('when the owner requires a second factor, a member without one must set it up first', async () => {
  const member = { email: 'vera@example.com', password: 'wide open window' }
  const create = ['account', 'create', '--email', member.email, '--role', 'viewer']
  const createResult = await appliance.cli(...create, '--json')
  const { link } = JSON.parse(createResult.stdout) as { link: string }
  await withPage(link, async (page) => {
    await page.getByLabel('New password').fill(member.password)
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Password changed').waitFor()
  })
  await withOwner(
    `${appliance.url}/settings/organization`,
    async (page) => {
      await page.getByText('A second factor is optional. 2 members have none.').waitFor()
      await page.getByRole('button', { name: 'Require a second factor' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText(member.email).waitFor()
      await picture(page, 'second-factor-rule')
      await dialog.getByRole('button', { name: 'Require it' }).click()
      // Nobody locks themselves out by a click.
      expect(await dialog.getByRole('alert').innerText()).toContain('Set up your own second factor first.')
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await goInside(page, '/settings/account')
      await page.getByRole('button', { name: 'Set up a second factor' }).click()
      await setUp(page, owner.password)
      await goInside(page, '/settings/organization')
      await page.getByRole('button', { name: 'Require a second factor' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Require it' }).click()
      await page.getByText('A second factor is required.').waitFor()
    },
    { allow: [/status of 409/] },
  )
  await withPage(`${appliance.url}/logs`, async (page) => {
    await signInAs(page, member.email, member.password)
    await page.getByRole('heading', { name: 'Second factor required' }).waitFor()
    expect(await page.locator('.shell').count()).toBe(0)
    await picture(page, 'second-factor-needed')
    await page.getByRole('button', { name: 'Set up a second factor' }).click()
    await setUp(page, member.password)
    await page.locator('.shell').waitFor()
    await page.getByRole('heading', { name: 'Logs' }).waitFor()
  })
  const off = await appliance.cli('org', 'sign-in-rule', '--second-factor', 'optional')
  expect([off.code, off.stdout]).toEqual([0, 'The second factor is optional in the organization default.\n'])
}, 120_000)

test('a signed-in member must set up a second factor when it becomes required', async () => {
  const member = { email: 'paul@example.com', password: 'another open window' }
  const { link } = JSON.parse(
    (await appliance.cli('account', 'create', '--email', member.email, '--role', 'viewer', '--json')).stdout,
  ) as { link: string }
  await withPage(
    link,
    async (page) => {
      await page.getByLabel('New password').fill(member.password)
      await page.getByRole('button', { name: 'Set password' }).click()
      await signInAs(page, member.email, member.password)
      await page.locator('.shell').waitFor()
      expect((await appliance.cli('org', 'sign-in-rule', '--second-factor', 'required')).code).toBe(0)
      // The next request is refused: that of the click, or one that the page sends before it.
      const link = page.getByRole('link', { name: 'Analytics' }).first()
      await link.click({ timeout: 3_000 }).catch(() => undefined)
      await page.getByRole('heading', { name: 'Second factor required' }).waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    },
    { allow: [/status of 403/] },
  )
}, 90_000)
