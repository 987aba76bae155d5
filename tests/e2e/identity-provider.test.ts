/** Sign-in through a real OpenID Connect provider in a real browser: who is admitted, and who is rejected and why. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { type IdentityProvider, signInAt, startIdentityProvider } from '../support/identity-provider.ts'
import { owner, ownerEnv } from './dashboard-actions.ts'
import { goInside } from './pages-actions.ts'

const client = { id: 'sightglass', secret: 'a secret between the two of them' }
// The provider is another host on purpose, and its own pages are not ours to judge.
const allow = [/request to another host/, /^console:/, /content security policy/]

let provider: IdentityProvider
let appliance: Appliance
beforeAll(async () => {
  provider = await startIdentityProvider()
  appliance = await startAppliance({
    args: ['--oidc-issuer', provider.issuer, '--oidc-client-id', client.id, '--oidc-name', 'Example ID'],
    env: { ...ownerEnv, SIGHTGLASS_OIDC_CLIENT_SECRET: client.secret },
  })
  provider.knows({ ...client, redirectUri: `${appliance.url}/api/oidc/callback` })
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  await provider.stop()
})

/** Signs in on the provider's own pages as `subject`. */
async function goThrough(page: Page, subject: string): Promise<void> {
  await page.getByRole('link', { name: 'Continue with Example ID' }).click()
  await page.getByPlaceholder('Enter any login').fill(subject)
  await page.getByPlaceholder('and password').fill('whatever')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

test('a verified email address links an account, and afterwards the subject identifies it', async () => {
  provider.people.set('subject-ada', { email: 'Ada@Example.com', verified: true })
  const enter = () =>
    withPage(
      appliance.url,
      async (page) => {
        await goThrough(page, 'subject-ada')
        await page.locator('.shell').waitFor()
        expect(new URL(page.url()).origin).toBe(appliance.url)
        await goInside(page, '/settings/account')
        await page.getByRole('definition').filter({ hasText: owner.email }).waitFor()
      },
      { allow },
    )
  await enter()
  provider.people.set('subject-ada', { email: 'moved@example.com', verified: true })
  await enter()
  const trail = await appliance.cli('export', 'audit')
  expect(trail.stdout.match(/"by":"provider"/g)?.length).toBe(2)
}, 90_000)

test('the page explains why an identity without an account or with an unverified address is rejected', async () => {
  provider.people.set('subject-eve', { email: owner.email, verified: false })
  provider.people.set('subject-bob', { email: 'bob@example.com', verified: true })
  for (const subject of ['subject-eve', 'subject-bob']) {
    await withPage(
      appliance.url,
      async (page) => {
        await goThrough(page, subject)
        await page.getByText('No account has this identity').waitFor()
        expect((await page.request.get(`${appliance.url}/api/session`)).status()).toBe(401)
      },
      { allow },
    )
  }
}, 90_000)

test('a forged, replayed or unsolicited callback signs nobody in', async () => {
  const start = await fetch(`${appliance.url}/api/oidc/start`, { redirect: 'manual' })
  const cookie = start.headers.get('set-cookie')?.split(';')[0] ?? ''
  const authorizeUrl = new URL(start.headers.get('location') ?? '')
  expect([start.status, authorizeUrl.origin, authorizeUrl.searchParams.get('code_challenge_method')]).toEqual(
    [303, provider.issuer, 'S256'],
  )
  const state = authorizeUrl.searchParams.get('state') ?? ''
  const issuer = encodeURIComponent(provider.issuer)
  for (const [query, sentCookie, refused] of [
    [`code=made-up&state=${state}&iss=${issuer}`, cookie, 'failed'],
    [`code=made-up&state=other&iss=${issuer}`, cookie, 'expired'],
    [`code=made-up&state=${state}&iss=${issuer}`, '', 'expired'],
    [`error=access_denied&state=${state}&iss=${issuer}`, cookie, 'failed'],
  ] as const) {
    const back = await fetch(`${appliance.url}/api/oidc/callback?${query}`, {
      headers: sentCookie === '' ? {} : { cookie: sentCookie },
      redirect: 'manual',
    })
    expect([back.status, back.headers.get('location')]).toEqual([303, `/sign-in?refused=${refused}`])
    expect(back.headers.get('set-cookie') ?? '').not.toContain('sightglass=')
  }
  expect(appliance.stderr()).not.toContain(client.secret)
})

test('two tabs sign in side by side, and a stray callback ends neither', async () => {
  provider.people.set('subject-tabs', { email: 'Ada@Example.com', verified: true })
  const begin = async () => {
    const start = await fetch(`${appliance.url}/api/oidc/start`, { redirect: 'manual' })
    return {
      url: start.headers.get('location') ?? '',
      cookie: start.headers.get('set-cookie')!.split(';')[0]!,
    }
  }
  const tabs = [await begin(), await begin()]
  const cookie = tabs.map((tab) => tab.cookie).join('; ')
  const call = (url: URL) => fetch(url, { headers: { cookie }, redirect: 'manual' })
  const stray = await call(new URL(`${appliance.url}/api/oidc/callback?code=a&state=${'x'.repeat(43)}`))
  expect(stray.headers.get('location')).toBe('/sign-in?refused=expired')
  for (const tab of tabs)
    for (const { cookie: tabCookie } of tabs) {
      const name = tabCookie.split('=')[0]!
      expect(stray.headers.get('set-cookie') ?? '').not.toContain(name)
      expect(tab.url).toContain('state=')
    }
  for (const tab of tabs.toReversed()) {
    const back = await call(await signInAt(tab.url, 'subject-tabs'))
    // This address has the subject of an earlier test, so either is known here: neither request was lost.
    expect(back.headers.get('location')).not.toContain('expired')
    expect(back.headers.get('location')).not.toContain('failed')
  }
})

test("the provider's own reason reaches the page and the log", async () => {
  const start = await fetch(`${appliance.url}/api/oidc/start`, { redirect: 'manual' })
  const cookie = start.headers.get('set-cookie')?.split(';')[0] ?? ''
  const state = new URL(start.headers.get('location') ?? '').searchParams.get('state') ?? ''
  const query = new URLSearchParams({
    error: 'access_denied',
    error_description: 'Not in the group of tools',
    state,
    iss: provider.issuer,
  })
  await withPage(
    appliance.url,
    async (page) => {
      const [name = '', value = ''] = cookie.split(/=(.*)/s)
      await page.context().addCookies([{ name, value, url: `${appliance.url}/api/oidc/` }])
      await page.goto(`${appliance.url}/api/oidc/callback?${query}`)
      await page.getByText('The provider says: access_denied: Not in the group of tools').waitFor()
    },
    { allow },
  )
  expect(appliance.stderr()).toContain('access_denied: Not in the group of tools')
}, 60_000)
