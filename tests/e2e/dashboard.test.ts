/** The first minute of an owner: the link, a key, the command from the empty page, the event on it; then out and in. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { owner, runCurl, signIn } from './dashboard-actions.ts'

let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance()
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

test('the setup link leads to Overview, which asks for the first event', async () => {
  const link = await appliance.setupLink()
  await withPage(link, async (page) => {
    await page.getByLabel('Email').fill(owner.email)
    await page.getByLabel('Password').fill(owner.password)
    await page.getByRole('button', { name: 'Create owner' }).click()

    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/overview')
    expect(await page.title()).toBe('Overview · Sightglass')
    const command = await page.getByLabel('Command that sends a first event').innerText()
    expect(command).toContain(`${appliance.url}/v1/sdk/events`)

    await page.getByRole('link', { name: 'Create an ingest key' }).click()
    await page.getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Label').fill('shop backend')
    await dialog.getByRole('button', { name: 'Create key' }).click()
    const key = await dialog.getByLabel('New key').innerText()
    expect(key).toMatch(/^agtx_ik_[A-Za-z0-9_-]{32}$/)
    await dialog.getByRole('button', { name: 'Copy key' }).click()
    await dialog.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key)
    const ownCommand = await dialog.getByLabel('Example command').innerText()
    await dialog.getByRole('button', { name: 'Done' }).click()
    expect(await page.locator('body').innerText()).not.toContain(key)
    expect(await page.getByRole('rowheader', { name: 'shop backend' }).count()).toBe(1)

    await page.goBack()
    await page.getByRole('heading', { name: 'No events yet' }).waitFor()
    const response = await runCurl(command.replace('YOUR_INGEST_KEY', key))
    expect([response.status, await response.json()]).toEqual([202, { ok: true, accepted: 1, deduped: 0 }])
    await page.getByRole('heading', { name: 'Last 7 days' }).waitFor({ timeout: 15_000 })
    await page.getByRole('link', { name: 'Logs', exact: true }).click()
    await page.getByRole('row').filter({ hasText: 'agent.detected' }).waitFor()

    expect(await (await runCurl(ownCommand)).json()).toEqual({ ok: true, accepted: 1, deduped: 0 })
    await page.locator('.event-row').nth(1).waitFor({ timeout: 1_000 })

    await page.reload()
    await page.locator('.event-row').nth(1).waitFor()
    await page.goto(`${appliance.url}/settings/ingest-keys`)
    await page.getByRole('rowheader', { name: 'shop backend' }).waitFor()
    expect(await page.content()).not.toContain(key)
  })
}, 90_000)

test('a used setup link is refused with a link to sign in', async () => {
  const link = await appliance.setupLink()
  await withPage(link, async (page) => {
    // Before anybody types a password into it.
    await page.getByRole('heading', { name: 'This setup link was used' }).waitFor()
    expect(await page.getByLabel('Email').count()).toBe(0)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.waitForURL('**/sign-in')
    await page.getByLabel('Email').waitFor()
  })
}, 90_000)

test('sign-in returns to the requested page, a wrong password is explained, and signing out ends access', async () => {
  await withPage(
    `${appliance.url}/logs?type=agent.*&outcome=success`,
    async (page) => {
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      expect(await page.title()).toBe('Sign in · Sightglass')
      await page.getByLabel('Email').fill(owner.email)
      await page.getByLabel('Password').fill('not the password')
      await page.getByRole('button', { name: 'Sign in' }).click()
      expect(await page.getByRole('alert').innerText()).toContain('Lost password?')

      await signIn(page)
      expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe(
        '/logs?type=agent.*&outcome=success',
      )
      await page.locator('.event-row').first().waitFor()

      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('button', { name: 'Sign in' }).waitFor()
      await page.goto(`${appliance.url}/settings`)
      await page.getByLabel('Password').waitFor()
      expect((await page.request.get(`${appliance.url}/api/session`)).status()).toBe(401)
    },
    { allow: [/status of 401/] },
  )
}, 90_000)

test('a session that ended elsewhere leads to the form and back to the page', async () => {
  await withPage(
    `${appliance.url}/logs`,
    async (page) => {
      await signIn(page)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.context().clearCookies()
      await page.getByRole('link', { name: 'Settings' }).click()
      await page.getByText('You were signed out').waitFor()
      await signIn(page)
      await page.getByRole('heading', { name: 'Settings' }).waitFor()
    },
    { allow: [/status of 401/] },
  )
}, 90_000)

test('a reset link from the command line replaces a lost password', async () => {
  const resetExit = await appliance.cli('account', 'reset-password', '--email', owner.email)
  expect([resetExit.code, resetExit.stderr]).toEqual([0, ''])
  const link = /\S+\/reset#\S+/.exec(resetExit.stdout)?.[0] ?? ''
  await withPage(link, async (page) => {
    await page.getByLabel('New password').fill('a newer horse battery')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Password changed').waitFor()
    await page.getByLabel('Email').fill(owner.email)
    await page.getByLabel('Password').fill('a newer horse battery')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })
}, 90_000)
