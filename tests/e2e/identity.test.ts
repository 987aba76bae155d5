/** People in a real browser: invitation, second factor with recovery, organizations, sites, keys, the audit log. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import jsQR from 'jsqr'
import { Secret, TOTP } from 'otpauth'
import type { Page, Route } from 'playwright'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { ingestKey, owner, ownerEnv, send, signIn, signInAs, withOwner } from './dashboard-actions.ts'
import { goInside } from './pages-actions.ts'

let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance({ env: ownerEnv })
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

test('an invitation link is created and accepted, and the new member sees what their role permits', async () => {
  const link = await withOwner(`${appliance.url}/settings/people`, async (page) => {
    await page.getByRole('button', { name: 'Invite member' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Email').fill('vera@example.com')
    await dialog.getByLabel('Role').selectOption('viewer')
    await dialog.getByRole('button', { name: 'Create link' }).click()
    const shown = await page.getByLabel('Invitation link').innerText()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('region', { name: 'Pending invitations' }).getByText('vera@example.com').waitFor()
    return shown
  })
  expect(link).toStartWith(`${appliance.url}/invitation#`)
  await withPage(link, async (page) => {
    await page.getByText('vera@example.com is invited to Default as viewer.').waitFor()
    await page.getByLabel('Choose a password').fill('wide open window')
    await page.getByRole('button', { name: 'Accept' }).click()
    await page.locator('.shell').waitFor()
    await goInside(page, '/settings/people')
    await page.getByText('Only owners and admins can manage people. Your role is viewer.').waitFor()
    await goInside(page, '/settings/audit')
    await page.getByText('Only owners, admins and analysts can read the audit log.').waitFor()
  })
  await withPage(
    link,
    async (page) => {
      expect(await page.getByRole('alert').innerText()).toContain('used or has expired')
    },
    { allow: [/status of 403/] },
  )
}, 90_000)

/** Reads the QR code from a screenshot, as a camera would. */
async function scan(page: Page, label: string): Promise<string> {
  const picture = (await page.getByRole('img', { name: label }).screenshot()).toString('base64')
  const { width, height, data } = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
    const bitmap = await createImageBitmap(new Blob([bytes]))
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')!
    canvas.drawImage(bitmap, 0, 0)
    const { width, height, data } = canvas.getImageData(0, 0, bitmap.width, bitmap.height)
    return { width, height, data: [...data] }
  }, picture)
  return jsQR(new Uint8ClampedArray(data), width, height)?.data ?? 'unreadable'
}

test('a second factor is set up with an app and required at sign-in; a recovery code replaces the app', async () => {
  const password = 'a window of one’s own'
  const accountExit = await appliance.cli(
    'account',
    'create',
    '--email',
    'theo@example.com',
    '--role',
    'admin',
    '--json',
  )
  const { link } = JSON.parse(accountExit.stdout) as { link: string }
  let seed = ''
  let recovery = ''
  await withPage(link, async (page) => {
    await page.getByLabel('New password').fill(password)
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Password changed').waitFor()
    await signInAs(page, 'theo@example.com', password)
    await page.locator('.shell').waitFor()
    await goInside(page, '/settings/account')
    await page.getByRole('button', { name: 'Set up a second factor' }).click()
    const dialog = page.getByRole('dialog')
    seed = (await dialog.getByLabel('Setup key').innerText()).replaceAll(' ', '')
    const scanned = await scan(page, 'QR code for the authenticator app')
    expect(new URL(scanned).searchParams.get('secret')).toBe(seed)
    const code = new TOTP({ secret: Secret.fromBase32(seed) }).generate()
    await dialog.getByLabel('Code', { exact: true }).fill(code)
    await dialog.getByLabel('Your password').fill(password)
    await dialog.getByRole('button', { name: 'Turn on' }).click()
    recovery = await page.getByLabel('Recovery codes').locator('li').first().innerText()
    await page.getByRole('button', { name: 'Done, I saved them' }).click()
    await page.getByText('10 recovery codes left').waitFor()
  })
  const withCode = (code: string, check: (page: Page) => Promise<void>, allow: RegExp[] = []) =>
    withPage(
      `${appliance.url}/settings/account`,
      async (page) => {
        await signInAs(page, 'theo@example.com', password)
        await page.getByLabel('Code').fill(code)
        await page.getByRole('button', { name: 'Continue' }).click()
        await check(page)
      },
      { allow },
    )
  await withCode(
    '000000',
    async (page) => expect(await page.getByRole('alert').innerText()).toContain('wrong or was already used'),
    [/status of 401/],
  )
  // The current code is used up. The next one is accepted early, because clocks differ.
  const code = new TOTP({ secret: Secret.fromBase32(seed) }).generate({ timestamp: Date.now() + 30_000 })
  await withCode(code, async (page) => page.getByText('10 recovery codes left').waitFor())
  await withCode(recovery, async (page) => page.getByText('9 recovery codes left').waitFor())
}, 90_000)

const answeredLate = (delay: Promise<void>) => async (route: Route) => {
  const headers = await route.request().allHeaders()
  await delay
  const answer = await fetch(route.request().url(), { headers })
  await route.fulfill({ status: answer.status, body: await answer.text() })
}

async function createOrganization(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Create organization' }).click()
  await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill(name)
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
}

test('an organization is created, opened, renamed, scheduled for deletion and restored', async () => {
  await withOwner(`${appliance.url}/settings/organization`, async (page) => {
    await createOrganization(page, 'Branch Office')
    await page.getByRole('button', { name: 'Open Branch Office' }).click()
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor()
    await page.getByRole('link', { name: 'branch-office' }).click()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('The Branch')
    await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('definition').filter({ hasText: 'The Branch' }).waitFor()
    await page.getByRole('button', { name: 'Delete organization' }).click()
    await page.getByRole('dialog').getByLabel('Type branch-office to confirm').fill('branch-office')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete in 7 days' }).click()
    await page.getByText('This organization will be deleted on').waitFor()
    await page.getByRole('button', { name: 'Cancel deletion' }).click()
    await page.getByText('This organization will be deleted on').waitFor({ state: 'detached' })
  })
}, 90_000)

test('a request sent before a switch of organization is refused without ending the sign-in', async () => {
  await withOwner(
    `${appliance.url}/settings/organization`,
    async (page) => {
      await createOrganization(page, 'Second Office')
      const isOpen = Promise.withResolvers<void>()
      const refused = page.waitForResponse((answer) => answer.status() === 401)
      // Sent with the old cookie, answered after the switch.
      await page.route('**/api/overview', answeredLate(isOpen.promise), { times: 1 })
      const overviewRequest = page.waitForRequest('**/api/overview')
      await page.getByRole('link', { name: 'Detect', exact: true }).click()
      await overviewRequest // a busy browser goes back before the page has asked
      await page.goBack()
      await page.getByRole('button', { name: 'Open Second Office' }).click()
      await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor()
      isOpen.resolve()
      await refused
      await page.getByRole('link', { name: 'Detect', exact: true }).click()
      await page.getByRole('heading', { name: 'Detect', exact: true }).waitFor()
      await page.getByRole('link', { name: 'second-office' }).waitFor()
    },
    { allow: [/status of 401/] },
  )
}, 90_000)

test('a key’s label, scopes, sites and expiry are edited, and the audit log shows before and after', async () => {
  const make = (kind: string) => appliance.cli('key', 'create', '--kind', kind, '--label', `my ${kind}`)
  await Promise.all([make('ingest'), make('secret')])
  await withOwner(`${appliance.url}/settings/ingest-keys`, async (page) => {
    await page.getByRole('button', { name: 'Edit my ingest' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Label').fill('the shop’s backend')
    await dialog.getByLabel('Sites').fill('shop-a, shop-b')
    await dialog.getByLabel('Expires on').fill('2096-02-28')
    await dialog.getByRole('button', { name: 'Save' }).click()
    const row = page.getByRole('row', { name: 'the shop’s backend' })
    expect(await row.innerText()).toContain('sites shop-a, shop-b; expires 28 Feb 2096, 23:59 UTC')

    await page.getByRole('button', { name: 'Edit the shop’s backend' }).click()
    expect(await dialog.getByLabel('Sites').inputValue()).toBe('shop-a, shop-b')
    await dialog.getByLabel('Sites').fill('')
    await dialog.getByLabel('Expires on').fill('')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await row.getByText('shop-b').waitFor({ state: 'detached' })
    expect(await row.innerText()).not.toContain('expires')

    await goInside(page, '/settings/api-keys')
    await page.getByRole('button', { name: 'Edit my secret' }).click()
    await dialog.getByLabel('audit:read').check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('scopes audit:read').waitFor()

    await goInside(page, '/settings/audit')
    await page.getByRole('button', { name: 'secret_key.changed' }).first().click()
    const changed = await page.getByRole('region', { name: 'Changes' }).innerText()
    expect(changed).toMatch(/scopes\s+\[\]\s+\["audit:read"\]/)
  })
}, 90_000)

test('a site is named, a leaked key is rotated, and the audit log shows both with before and after', async () => {
  const key = await ingestKey(appliance)
  const event = {
    id: 'e1',
    siteId: '<img src=x onerror=alert(1)>',
    sessionId: 's',
    occurredAt: new Date().toISOString(),
    type: 'agent.detected',
    outcome: 'success',
  }
  await send(appliance.url, key, [event])
  const leaked = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, origin: 'https://shop.example' },
    body: '{}',
  })
  expect(leaked.status).toBe(403)
  const visit = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: `Edit ${event.siteId}` }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Name' }).fill('The shop')
    await dialog.getByRole('checkbox', { name: /Restricted/ }).check()
    await dialog.getByRole('textbox', { name: 'Hosts' }).fill('https://shop.example')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('without https:// and without a path').waitFor()
    await dialog.getByRole('textbox', { name: 'Hosts' }).fill('Shop.example, www.shop.example:443')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('cell', { name: 'The shop' }).waitFor()
    await page.getByRole('cell', { name: 'shop.example www.shop.example' }).waitFor()

    await goInside(page, '/settings/ingest-keys')
    await page.getByRole('button', { name: 'Rotate this key' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Create new key' }).click()
    const fresh = await page.getByLabel('New key').innerText()
    expect(fresh).toMatch(/^agtx_ik_/)
    expect(fresh).not.toBe(key)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('cell', { name: 'expired' }).waitFor()

    await goInside(page, '/settings/audit')
    await page.getByRole('button', { name: 'ingest_key.rotated' }).waitFor()
    await page.getByLabel('Search').fill('The shop')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('button', { name: 'ingest_key.rotated' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'site.changed' }).click()
    const changed = page.getByRole('region', { name: 'Changes' })
    expect(await changed.innerText()).toMatch(/name\s+none\s+The shop/)
    await page.getByRole('button', { name: 'Close' }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ])
    const csv = readFileSync((await download.path()) ?? '', 'utf8')
      .trim()
      .split('\n')
    expect(csv[0]).toBe('id,orgId,actor,action,target,metadata,occurredAt')
    // The entry of the site and the entry of this export, which contains the search text.
    expect(csv.slice(1).map((line) => /(site\.changed|audit\.exported)/.exec(line)?.[0])).toEqual([
      'audit.exported',
      'site.changed',
    ])
  }
  await withOwner(`${appliance.url}/settings/sites`, visit, { allow: [/400 \(Bad Request\).*sites/] })
}, 90_000)

test('the account page ends other sign-ins, and the audit log verifies', async () => {
  await withPage(`${appliance.url}/settings/account`, async (page) => {
    await signIn(page)
    await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
    await page.getByRole('button', { name: 'Sign out everywhere else' }).waitFor({ state: 'detached' })
    await page.getByLabel('Current password').fill(owner.password)
    await page.getByLabel('New password').fill('another horse battery')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Password changed.').waitFor()
  })
  const verified = await appliance.cli('verify', 'audit', '--json')
  expect([verified.code, verified.stderr]).toEqual([0, ''])
  expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, faults: [] })
}, 90_000)
