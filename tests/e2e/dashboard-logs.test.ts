/** Logs in a real browser: live within a second, filtered, paused, cut off, opened, hostile. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser, type PageOptions } from '../support/browser.ts'
import { event, exampleEvent } from '../support/events.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { ingestKey, ownerEnv, rows, runCurl, send, withOwner } from './dashboard-actions.ts'

let dir: TempDir
let appliance: Appliance
let key: string
beforeAll(async () => {
  dir = tempDir('logs')
  appliance = await startAppliance({ dataDir: dir.join('data'), env: ownerEnv })
  key = await ingestKey(appliance)
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  dir.remove()
})

function onLogs(
  search: string,
  visit: (page: Page) => Promise<void>,
  options: PageOptions = {},
): Promise<void> {
  const onHeading = async (page: Page): Promise<void> => {
    await page.getByRole('heading', { name: 'Logs', exact: true }).waitFor()
    await visit(page)
  }
  return withOwner(`${appliance.url}/logs${search}`, onHeading, options)
}

const row = (page: Page, text: string) => page.locator('.event-row').filter({ hasText: text })

test('the example event of the contract appears within a second of its post', async () => {
  await onLogs('', async (page) => {
    await page.getByRole('heading', { name: 'No events yet' }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await send(appliance.url, key, [exampleEvent])
    await row(page, 'checkout.pay').waitFor({ timeout: 1_000 })
    expect(await rows(page)).toHaveLength(1)
    expect((await rows(page))[0]).toMatch(/authz\.evaluated.*Operator.*checkout\.pay.*\/checkout.*blocked/)
  })
}, 90_000)

test('filters appear as chips, are stored in the address and apply to new events', async () => {
  await send(appliance.url, key, [
    event('f1', { type: 'agent.detected', outcome: 'success', tool: 'filter-a' }),
    event('f2', { type: 'authz.policies_set', outcome: 'success', tool: 'filter-b' }),
    event('f3', { type: 'tool.executed', outcome: 'error', tool: 'filter-c' }),
  ])
  await onLogs('', async (page) => {
    await page.locator('.event-row').nth(3).waitFor()
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('checkbox', { name: 'authz.*' }).check()
    await page.locator('.event-row').nth(2).waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('?type=authz.*')
    expect((await rows(page)).every((text) => text.includes('authz.'))).toBe(true)

    await page.getByRole('checkbox', { name: 'success' }).check()
    await page.keyboard.press('Escape')
    await page.locator('.event-row').nth(1).waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('?type=authz.*&outcome=success')
    expect(await rows(page)).toHaveLength(1)

    await page.getByText('Live', { exact: true }).waitFor()
    await send(appliance.url, key, [
      event('f4', { type: 'authz.evaluated', outcome: 'blocked', tool: 'filter-no' }),
      event('f5', { type: 'agent.detected', outcome: 'success', tool: 'filter-no' }),
      event('f6', { type: 'authz.evaluated', outcome: 'success', tool: 'filter-yes' }),
    ])
    await row(page, 'filter-yes').waitFor({ timeout: 1_000 })
    expect(await rows(page)).toHaveLength(2)

    await page.getByRole('button', { name: 'Remove filter type authz.*' }).click()
    await row(page, 'filter-a').waitFor()
    await page.goBack()
    await row(page, 'filter-a').waitFor({ state: 'detached' })
    await page.reload()
    await row(page, 'filter-yes').waitFor()
    expect(await rows(page)).toHaveLength(2)
  })
}, 90_000)

test('while paused, new events are counted and not shown; resuming shows them', async () => {
  await onLogs('?type=pause.test', async (page) => {
    await page.getByText('Live', { exact: true }).waitFor()
    await send(appliance.url, key, [event('p1', { type: 'pause.test', tool: 'before' })])
    await row(page, 'before').waitFor()
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await send(appliance.url, key, [
      event('p2', { type: 'pause.test', tool: 'while-a' }),
      event('p3', { type: 'pause.test', tool: 'while-b' }),
    ])
    await page.getByText('Paused, 2 new events').waitFor({ timeout: 2_000 })
    expect(await rows(page)).toHaveLength(1)
    await page.getByRole('button', { name: 'Resume' }).click()
    await row(page, 'while-b').waitFor()
    expect((await rows(page)).map((text) => /before|while-[ab]/.exec(text)?.[0])).toEqual([
      'while-b',
      'while-a',
      'before',
    ])
  })
}, 90_000)

test('a crash and restart of the server leave no gap and no duplicate', async () => {
  await onLogs(
    '?type=cut.test',
    async (page) => {
      await page.getByText('Live', { exact: true }).waitFor()
      await send(appliance.url, key, [event('c1', { type: 'cut.test', tool: 'cut-1' })])
      await row(page, 'cut-1').waitFor()
      const { port } = new URL(appliance.url)
      await appliance.kill()
      await page.getByText('Connection lost').waitFor()
      appliance = await startAppliance({ dataDir: dir.join('data'), args: ['--listen', `127.0.0.1:${port}`] })
      // Sent before the page can have found its way back, and after.
      await send(appliance.url, key, [event('c2', { type: 'cut.test', tool: 'cut-2' })])
      await send(appliance.url, key, [event('c3', { type: 'cut.test', tool: 'cut-3' })])
      await page.getByText('Live', { exact: true }).waitFor({ timeout: 15_000 })
      await send(appliance.url, key, [event('c4', { type: 'cut.test', tool: 'cut-4' })])
      await row(page, 'cut-4').waitFor()
      const cutNames = (await rows(page)).map((text) => /cut-\d/.exec(text)?.[0])
      expect(cutNames).toEqual(['cut-4', 'cut-3', 'cut-2', 'cut-1'])
    },
    {
      allow: [
        /ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)/,
      ],
    },
  )
}, 90_000)

test('the drawer shows the reason, facts and exact digits, copies them, and obeys the keyboard', async () => {
  const exact =
    '{"id":"d2","siteId":"shop-acme","sessionId":"s","occurredAt":"2026-06-23T12:00:00Z",' +
    '"type":"drawer.test","outcome":"success","big":12345678901234567890.12345678901234567890,"it\'s":"a \\"quote\\""}'
  await send(appliance.url, key, [event('d1', { type: 'drawer.test' })])
  const response = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: `{"events":[${exact}]}`,
  })
  expect(response.status).toBe(202)
  await onLogs('?type=drawer.test', async (page) => {
    await page.locator('.event-row').nth(1).waitFor()
    await row(page, 'blocked').click()
    const drawer = page.getByRole('complementary', { name: 'Event' })
    expect(await drawer.locator('.why').innerText()).toMatch(
      /Why\s+Rule tool:checkout\.pay denied this event: trust below verified.*detected/s,
    )
    expect(await drawer.locator('.facts').innerText()).toMatch(
      /Operator.*dom.*detected.*web-bot-auth.*sess_1/s,
    )
    expect(new URL(page.url()).searchParams.get('event')).toBe('d1')

    await page.keyboard.press('k')
    await drawer.getByText('12345678901234567890.12345678901234567890').waitFor()
    expect(new URL(page.url()).searchParams.get('event')).toBe('d2')
    await drawer.getByRole('button', { name: 'Copy JSON' }).click()
    await drawer.getByRole('button', { name: 'Copied' }).waitFor()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toContain('12345678901234567890.12345678901234567890')
    expect(JSON.parse(copied)).toEqual(JSON.parse(exact))
    await drawer.getByRole('button', { name: 'Copy as curl' }).click()
    await drawer.getByRole('button', { name: 'Copied' }).nth(1).waitFor()
    const command = await page.evaluate(() => navigator.clipboard.readText())
    const again = await runCurl(command.replace('YOUR_INGEST_KEY', key))
    expect(await again.json()).toEqual({ ok: true, accepted: 0, deduped: 1 })

    await page.keyboard.press('Escape')
    await drawer.waitFor({ state: 'detached' })
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await drawer.locator('.why').waitFor()
    await page.goBack()
    await drawer.waitFor({ state: 'detached' })
  })
}, 90_000)

test('hostile text creates no markup, link or hidden direction and does not stretch the page', async () => {
  const long = 'x'.repeat(200)
  await send(appliance.url, key, [
    event('h1', {
      type: 'hostile.test',
      tool: '<img src=x onerror=alert(1)>',
      agent: { class: 'dom', trust: 'detected', vendor: `\u202Ereversed ${long.slice(0, 150)}` },
      policy: { decision: 'deny', ruleId: 'https://evil.example/', reason: '<script>alert(1)</script>' },
      metadata: { page: `javascript:alert(1)//${long}`, zalgo: 'a\u0301'.repeat(100) },
    }),
    event(`h/2?#%2e ${'é'.repeat(150)}`, { type: 'hostile.test', tool: 'odd id' }),
  ])
  for (const width of [1440, 390]) {
    await onLogs(
      '?type=hostile.test',
      async (page) => {
        await row(page, 'hostile.test').first().waitFor()
        expect(await page.locator('.event-row').first().innerText()).not.toContain('\u202E')
        await row(page, 'U+202E').click()
        const drawer = page.getByRole('complementary', { name: 'Event' })
        await drawer.locator('.json-view pre').waitFor()
        expect(await drawer.locator('.json-view pre').innerText()).toContain('\\u202ereversed')
        expect(await page.locator('main img, main script, .event-row a, .drawer a').count()).toBe(0)
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
        expect(overflow).toBeLessThanOrEqual(0)
        await drawer.getByRole('button', { name: 'Close' }).click()
        await page.locator('.event-row').first().click()
        await drawer.locator('.json-view pre').waitFor()
      },
      { viewport: { width, height: 800 } },
    )
  }
}, 40_000)
