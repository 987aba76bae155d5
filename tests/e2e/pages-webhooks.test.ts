/** Webhooks in a real browser, with a receiver that fails on demand: every state, number and button is real. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { Webhook } from 'standardwebhooks'
import type { Appliance } from '../support/binary.ts'
import { folderTest } from '../support/engine.ts'
import { closeBrowser, type PageOptions } from '../support/browser.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ingestKey, send, startWithOwner, withOwner } from './dashboard-actions.ts'
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
  const args = [
    '--webhook-allow',
    '127.0.0.0/8',
    '--webhook-backoff',
    '1s,1s,1s',
    '--dispatch-cron',
    '* * * * * *',
  ]
  appliance = await startWithOwner({ args })
  key = await ingestKey(appliance)
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  await receiver[Symbol.asyncDispose]()
})

const visit = (path: string, name: string, look: (page: Page) => Promise<void>, options: PageOptions = {}) =>
  withOwner(
    `${appliance.url}${path}`,
    async (page) => {
      await waitForHeading(page, name)
      await look(page)
    },
    options,
  )

const line = (page: Page, text: string) => page.locator('.endpoints li').filter({ hasText: text })
const delivery = (page: Page, text: string) => page.locator('.data-table tbody tr').filter({ hasText: text })

async function addEndpoint(page: Page, url: string, label: string): Promise<string> {
  await page.getByRole('button', { name: 'Add endpoint' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('URL').fill(url)
  await dialog.getByLabel('Label').fill(label)
  await dialog.getByLabel('Types').fill('hook.test')
  await dialog.getByRole('button', { name: 'Add endpoint' }).click()
  await dialog.getByText('No event has the type hook.test yet.').waitFor()
  await dialog.getByRole('button', { name: 'Add anyway' }).click()
  const secret = await page.getByLabel('Signing secret', { exact: true }).innerText()
  await page.getByRole('button', { name: 'Done, I saved it' }).click()
  return secret
}

test('an endpoint is added in Settings, its secret is shown once, and the sample code verifies its messages', async () => {
  await visit('/settings/webhooks', 'Settings', async (page) => {
    await page.getByText('No endpoints yet. Add one to receive events as webhooks.').waitFor()
    const secret = await addEndpoint(page, `${receiver.url}/ok/good`, 'Good one')
    expect(secret).toMatch(/^whsec_/)
    await addEndpoint(page, `${receiver.url}/status/500`, 'Bad one')
    await page
      .getByRole('row', { name: /Good one/ })
      .getByText('type hook.test')
      .waitFor()
    for (const language of ['JavaScript', 'Python', 'Shell']) {
      await page.getByRole('button', { name: language }).click()
      await page.getByLabel(`Verification code: ${language}`).waitFor()
    }
    await page.getByRole('button', { name: 'JavaScript' }).click()
    const code = await page.getByLabel('Verification code: JavaScript').innerText()
    await send(appliance.url, key, [
      recent('w1', { type: 'hook.test' }),
      recent('w2', { type: 'other.kind' }),
    ])
    const [received] = await receiver.wait('/ok/good', 1, 20_000)
    using folder = tempDir('snippet')
    writeFileSync(folder.join('verify.mjs'), code)
    const { isGenuine } = (await import(folder.join('verify.mjs'))) as {
      isGenuine(secret: string, headers: object, body: string): boolean
    }
    expect(isGenuine(secret, received?.headers ?? {}, received?.body ?? '')).toBe(true)
    expect(isGenuine(secret, received?.headers ?? {}, `${received?.body} `)).toBe(false)
    const { data } = JSON.parse(received?.body ?? '{}') as { data: { events: { id: string }[] } }
    expect(data.events.map(({ id }) => id)).toEqual(['w1'])
    await expectAccessibleInBothThemes(page.getByRole('region', { name: 'Endpoints' }))
  })
}, 90_000)

/** Pause, resume, rotate, replay of a time range and test messages. */
async function expectActions(page: Page): Promise<void> {
  await goInside(page, '/webhooks')
  await line(page, 'Good one').getByRole('button', { name: 'Pause' }).click()
  await line(page, 'Good one').getByText('paused', { exact: true }).waitFor()
  await send(appliance.url, key, [recent('w3', { type: 'hook.test' })])
  await Bun.sleep(1_500)
  expect(receiver.received('/ok/good')).toHaveLength(1)
  await line(page, 'Good one').getByRole('button', { name: 'Resume' }).click()
  const [, second] = await receiver.wait('/ok/good', 2, 20_000)
  expect(second?.body).toContain('"w3"')
  await line(page, 'Good one').getByRole('button', { name: 'Replay time range' }).click()
  // The field expects the browser's local time.
  const minuteOf = (agoMs: number) =>
    page.evaluate((ago) => {
      const date = new Date(Date.now() - ago)
      return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
    }, agoMs)
  await page
    .getByRole('dialog')
    .getByLabel('From')
    .fill(await minuteOf(3_600_000))
  await page
    .getByRole('dialog')
    .getByLabel('Until')
    .fill(await minuteOf(-120_000))
  await page.getByRole('dialog').getByRole('button', { name: 'Replay', exact: true }).click()
  await page.getByText('Replay started.').waitFor()
  const [, , third] = await receiver.wait('/ok/good', 3, 20_000)
  expect(third?.body).toContain('"sequence":3,"events":[{"id":"w1"')
  await line(page, 'Good one').getByRole('button', { name: 'Rotate secret' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await line(page, 'Good one').getByRole('button', { name: 'Rotate secret' }).click()
  await page.getByRole('dialog').getByText('Messages are signed with both secrets for 24 hours.').waitFor()
  await expectAccessibleInBothThemes(page.getByRole('dialog'))
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate secret' }).click()
  expect(await page.getByLabel('Signing secret', { exact: true }).innerText()).toMatch(/^whsec_/)
  await page.getByRole('button', { name: 'Done, I saved it' }).click()
  await line(page, 'Bad one')
    .getByText(/[12] dead letters?/)
    .waitFor({ timeout: 30_000 })
  await page.getByRole('button', { name: 'Send test', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('URL').fill(`${receiver.url}/ok/tried`)
  await dialog.getByLabel('Payload').fill('{"n": 1,')
  await dialog.getByRole('button', { name: 'Send test' }).click()
  await dialog.getByText('The payload is not valid JSON.').waitFor()
  await dialog.getByLabel('Payload').fill('{"text": "\u202e<b>"}')
  await dialog.getByRole('button', { name: 'Send test' }).click()
  const [retriedDelivery] = await receiver.wait('/ok/tried', 1, 20_000)
  expect(JSON.parse(retriedDelivery?.body ?? '')).toEqual({ text: '\u202e<b>' })
  await page.locator('.verdict.delivered').waitFor({ timeout: 10_000 })
  expect(await page.getByLabel('Request body').innerText()).toContain('\\u202e<b>')
}

test('the page shows health, deliveries and dead letters; a delivery its error, attempts and request; every action works', async () => {
  await visit('/webhooks', 'Webhooks', async (page) => {
    await line(page, 'Good one').getByText('healthy').waitFor()
    await line(page, 'Good one').getByText('1 delivered').waitFor()
    await line(page, 'Bad one').getByText('1 dead letter').waitFor({ timeout: 30_000 })
    await line(page, 'Bad one').getByText('failing', { exact: true }).waitFor()
    await page.getByText('2 deliveries').waitFor()
    await page.getByRole('button', { name: 'Dead letters', exact: true }).click()
    await delivery(page, 'Good one').waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('?status=dead_letter')
    await expectAccessibleInBothThemes(page.locator('main'))
    await delivery(page, 'Bad one').click()
    await page.getByText('Failed after 4 attempts.').waitFor()
    expect(await page.locator('.verdict').innerText()).toContain('the receiver answered 500')
    expect(await page.locator('.attempts > li').count()).toBe(4)
    await page.locator('.attempts summary').first().click()
    expect(await page.getByLabel('Response body').first().innerText()).toBe('answered 500')
    const deliveries = receiver.received('/status/500')
    expect(deliveries).toHaveLength(4)
    expect(await page.getByLabel('Request body').innerText()).toBe(deliveries[0]?.body ?? '')
    const headers = (await page.locator('.request-headers').innerText()).split(/\s*\n+\s*/)
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature', 'user-agent', 'content-type'])
      expect(headers[headers.indexOf(name) + 1]).toBe(deliveries[3]?.headers[name] ?? '')
    await expectAccessibleInBothThemes(page.locator('main'))
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await receiver.wait('/status/500', 5, 20_000)
    await page.locator('.attempts > li').nth(4).waitFor({ timeout: 10_000 })
    await expectActions(page)
  })
}, 120_000)

test('an unknown type is confirmed; retry waits are stored; a test is a batch signed with the endpoint’s secret', async () => {
  await visit('/settings/webhooks', 'Settings', async (page) => {
    await page.getByRole('button', { name: 'Add endpoint' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill(`${receiver.url}/ok/careful`)
    await dialog.getByLabel('Label').fill('Careful one')
    await dialog.getByLabel('Types').fill('agent.detcted, tool.executed')
    await dialog.getByLabel('Retry waits').fill('60s, 5m, 5m, 2h')
    await dialog.getByRole('button', { name: 'Add endpoint' }).click()
    await dialog.getByText('Did you mean').waitFor()
    await expectAccessibleInBothThemes(dialog)
    await dialog.getByRole('button', { name: 'agent.detected' }).click()
    expect(await dialog.getByLabel('Types').inputValue()).toBe('agent.detected, tool.executed')
    await dialog.getByRole('button', { name: 'Add endpoint' }).click()
    const secret = await page.getByLabel('Signing secret', { exact: true }).innerText()
    await page.getByRole('button', { name: 'Done, I saved it' }).click()
    await page
      .getByRole('row', { name: /Careful one/ })
      .getByRole('button', { name: 'Edit' })
      .click()
    expect(await dialog.getByLabel('Retry waits').inputValue()).toBe('1m, 5m, 5m, 2h')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await goInside(page, '/webhooks')
    await line(page, 'Careful one').getByRole('button', { name: 'Send test' }).click()
    const [request] = await receiver.wait('/ok/careful', 1, 20_000)
    expect(new Webhook(secret).verify(request!.body, request!.headers)).toMatchObject({
      type: 'trace.batch',
      data: { sequence: 0, test: true, events: [{ type: 'agent.detected' }] },
    })
    await page.locator('.verdict.delivered').waitFor({ timeout: 10_000 })
  })
}, 90_000)

test('all dead letters are replayed at once; long URLs fit a phone', async () => {
  await visit(
    '/webhooks',
    'Webhooks',
    async (page) => {
      await line(page, 'Bad one')
        .getByText(/[12] dead letters?/)
        .waitFor({ timeout: 30_000 })
      const countBefore = receiver.received('/status/500').length
      await page.getByRole('button', { name: 'Replay all dead letters' }).click()
      await page.getByText(/Replaying \d+ dead letters?/).waitFor()
      await receiver.wait('/status/500', countBefore + 1, 20_000)
      await expectNoSidewaysScroll(page)
    },
    { viewport: { width: 390, height: 844 } },
  )
}, 90_000)

test('a replayed delivery that the filter no longer shows is followed until it is delivered', async () => {
  const testResult = await appliance.cli('webhook', 'test', `${receiver.url}/flaky/4`, '--json')
  expect([testResult.code, testResult.stderr]).toEqual([0, ''])
  await receiver.wait('/flaky/4', 4, 20_000)
  await visit('/webhooks', 'Webhooks', async (page) => {
    await page.getByRole('button', { name: 'Dead letters', exact: true }).click()
    await delivery(page, '/flaky/4').click({ timeout: 20_000 })
    await page.getByText('Failed after 4 attempts.').waitFor()
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.locator('.verdict.delivered').waitFor({ timeout: 20_000 })
    expect(await page.locator('.attempts > li').count()).toBe(5)
    expect(receiver.received('/flaky/4')).toHaveLength(5)
  })
}, 90_000)

test('the page says in words why a delivery waits', async () => {
  const sent = await appliance.cli('webhook', 'test', `${receiver.url}/hang/page`, '--json')
  expect([sent.code, sent.stderr]).toEqual([0, ''])
  await receiver.wait('/hang/page', 1, 20_000)
  const words = /Waits for the response of the receiver until \d\d:\d\d/
  await visit('/webhooks', 'Webhooks', async (page) => {
    await delivery(page, '/hang/page').getByText(words).waitFor()
    await delivery(page, '/hang/page').click()
    await page.locator('.verdict.pending').getByText(words).waitFor()
    // After the timeout of 15 s the retries begin, 1 s after each other.
    await page.locator('.verdict.pending').getByText('1 attempt failed.').waitFor({ timeout: 30_000 })
  })
}, 90_000)

folderTest(
  'backups are created, verified, downloaded and deleted; health checks and stored data are shown',
  async () => {
    await visit('/settings/backups', 'Settings', async (page) => {
      await page.getByRole('button', { name: 'Back up now' }).click()
      const row = page.getByRole('region', { name: 'Backups' }).locator('tbody tr')
      await row.getByText('verified', { exact: true }).waitFor({ timeout: 40_000 })
      await row.getByRole('button', { name: /^Verify/ }).click()
      await row.getByText('verified', { exact: true }).waitFor({ timeout: 40_000 })
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        row.getByRole('link', { name: /^Download/ }).click(),
      ])
      expect(download.suggestedFilename()).toEndWith('.backup')
      await expectAccessibleInBothThemes(page.getByRole('region', { name: 'Backups' }))
      await row.getByRole('button', { name: /^Delete/ }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete backup' }).click()
      await page.getByText('No backups yet.').waitFor()
      await page.getByRole('link', { name: 'System', exact: true }).click()
      await page.getByRole('region', { name: 'Health checks' }).waitFor({ timeout: 40_000 })
      await page.getByRole('link', { name: 'Data and retention' }).click()
      await page.getByText('90 days (server default)').waitFor()
      await page.getByRole('button', { name: 'Change limits' }).click()
      await page.getByRole('dialog').getByLabel('Retention in days', { exact: true }).fill('45')
      await page.getByRole('dialog').getByLabel('Size limit in GB').fill('1.5')
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await page.getByText('45 days', { exact: true }).waitFor()
      await page.getByText('1.5 GB', { exact: true }).waitFor()
      const types = await page
        .getByRole('region', { name: 'Events by type' })
        .locator('tbody tr')
        .allInnerTexts()
      expect(types.map((text) => text.split(/\s+/))).toEqual([
        ['hook.test', '2'],
        ['other.kind', '1'],
      ])
      await page.getByRole('button', { name: 'Erase a session or an identity' }).click()
      await page.getByRole('dialog').getByLabel('Kind').selectOption('session')
      await page.getByRole('dialog').getByLabel('Exact session ID or identity').fill('sess_1')
      await page.getByRole('dialog').getByRole('button', { name: 'Count events' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Erase 3 events', exact: true }).click()
      await page.getByText(/^Erased 3 events/).waitFor({ timeout: 20_000 })
    })
  },
  120_000,
)
