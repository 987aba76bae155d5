/** Whose word a verdict is: 10,000 events that an ingest key calls verified, beside an access log that is judged. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { agentsLog, loggedAgents } from '../support/agents-log.ts'
import { closeBrowser } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { picture } from '../support/picture.ts'
import { tempDir } from '../support/temp-dir.ts'
import { newOrganization, send, withOwner, type Organization } from './dashboard-actions.ts'
import { expectAccessible, expectFit } from './pages-actions.ts'

/** A label can be anything: it is shown as text. */
const hostileLabel = `<img src=x onerror=alert(1)> ${'long '.repeat(9)}`
const claimedCount = 10_000
const files = tempDir('provenance')
let org: Organization

beforeAll(async () => {
  org = await newOrganization()
  const backend = await org.makeKey('ingest', 'backend')
  const hostile = await org.makeKey('ingest', hostileLabel)
  const drain = await org.makeKey('ingest', 'edge drain')
  for (let from = 0; from < claimedCount; from += 1_000)
    await send(
      org.url,
      backend,
      Array.from({ length: 1_000 }, (_, n) => claimed(`claim_${from + n}`)),
    )
  await send(org.url, hostile, [claimed('hostile_1')])
  const log = files.join('access.log')
  writeFileSync(log, agentsLog(Date.now()))
  const { code } = await org.appliance.cli('import', 'access', log, '--site', 'shop', '--org', org.slug)
  expect(code).toBe(0)
  const posted = await fetch(`${org.url}/v1/sdk/access-logs?siteId=shop`, {
    method: 'POST',
    body: agentsLog(Date.now() - 7_000),
    headers: { authorization: `Bearer ${drain}`, 'content-type': 'text/plain' },
  })
  expect(posted.status).toBe(202)
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  files.remove()
})

function claimed(id: string) {
  return event(id, {
    occurredAt: new Date(Date.now() - 60_000).toISOString(),
    type: 'agent.requested',
    outcome: 'success',
    siteId: 'shop',
    metadata: { page: '/' },
    agent: { class: 'crawler', vendor: 'OpenAI', name: 'GPTBot', trust: 'verified', verdict: 'verified' },
  })
}

const open = (path: string, visit: (page: Page) => Promise<void>, width = 1440) =>
  withOwner(`${org.url}${path}`, visit, { viewport: { width, height: 900 } })

const verifiedInLog = loggedAgents.reduce(
  (sum, { verdict, requests }) => (verdict === 'verified' ? sum + requests : sum),
  0,
)

const headline = (page: Page, name: string) =>
  page.locator('.headlines > div', { has: page.getByText(name, { exact: true }) }).locator('strong')

const fact = (page: Page, name: string) =>
  page.locator('.facts dt', { hasText: name }).locator('xpath=following-sibling::dd[1]')

test('Verified on Detect is what the appliance judged, and each key is named with what it reported', async () => {
  await open('/detect?siteId=shop&range=24h', async (page) => {
    await headline(page, 'Verified').filter({ hasText: /^98$/ }).waitFor()
    expect(2 * verifiedInLog).toBe(98)
    const judges = page.locator('.judges')
    await judges.getByRole('link', { name: '10,000 verified' }).waitFor()
    const [observed, reported] = await judges.locator('li').allInnerTexts()
    expect(observed).toMatch(/^Of the verified, 49 from addresses that key edge drain \(key_\S+\) reported\./)
    expect(reported).toMatch(
      /^Reported by senders, not checked .*: 10,000 verified by key backend \(key_\S+\), 1 verif/,
    )
    expect(await page.locator('main img').count()).toBe(0)
    await expectAccessible(judges)
    await expectFit(page, 'detect-judges')
    await judges.getByRole('link', { name: 'Exclude reported' }).click()
    await headline(page, 'Verified')
      .filter({ hasText: new RegExp(`^${verifiedInLog}$`) })
      .waitFor()
    await page.goBack()
    await judges.getByRole('link', { name: '10,000 verified' }).click()
    await page.waitForURL((url) => url.pathname === '/logs')
    expect(new URL(page.url()).searchParams.getAll('judgedBy')).toEqual(['sender'])
    await page.getByRole('button', { name: /ingest key backend key_/ }).waitFor()
    await page.getByText('10,000 events', { exact: false }).waitFor()
  })
}, 60_000)

test('the drawer says who reported a verdict, and that nobody checked it', async () => {
  for (const [id, label] of [
    ['claim_7', 'backend'],
    ['hostile_1', '<img src=x onerror'],
  ] as const)
    await open(`/logs?event=${id}`, async (page) => {
      await fact(page, 'Verdict').waitFor()
      const text = await fact(page, 'Verdict').innerText()
      expect(text).toStartWith(`Reported as verified by the sender, key ${label}`)
      expect(text).toEndWith('Sightglass did not check it.')
      expect(await fact(page, 'Received by').innerText()).toContain(`Events API, with key ${label}`)
      expect(await page.locator('main img').count()).toBe(0)
      await expectAccessible(page.locator('.drawer'))
      await picture(page, `drawer-${id}`)
    })
}, 60_000)

test('the drawer says by which list the appliance judged, and from whose observation', async () => {
  const query = 'type=agent.requested&judgedBy=appliance'
  for (const [verdict, isOwn] of [
    ['verified', false],
    ['contradicted', true],
  ] as const) {
    let id = ''
    await open('/logs', async (page) => {
      const { events } = await page.evaluate(
        async (path) => (await (await fetch(path)).json()) as { events: Received[] },
        `/api/events?limit=200&${query}&verdict=${verdict}`,
      )
      id = events.find(({ record }) => (record.key === null) === isOwn)!.event.id
    })
    await open(`/logs?event=${encodeURIComponent(id)}`, async (page) => {
      await fact(page, 'Verdict').waitFor()
      const text = (await fact(page, 'Verdict').innerText()).replaceAll(/\s+/g, ' ')
      if (isOwn)
        expect(text).toMatch(
          /^Contradicted\. \w+ publishes \d+ networks\. The address, in [\d.]+\/24, is not/,
        )
      else
        expect(text).toMatch(
          /^Verified, from an address that key edge drain \(key_\S+\) reported\. The address is in/,
        )
      expect(text).toMatch(/Judged .* by the list \w+ of \d{4}-\d\d-\d\d, SHA-256 [0-9a-f]{12}… Copy digest/)
      const door = await fact(page, 'Received by').innerText()
      expect(door).toStartWith(isOwn ? 'Access log, read on this machine' : 'Access log, with key edge drain')
      await expectAccessible(page.locator('.drawer'))
    })
  }
}, 60_000)

interface Received {
  event: { id: string }
  record: { key: string | null }
}

test('a row of Logs tells the agent from its impostor, and names the request and its answer', async () => {
  const rowOf = (page: Page) => page.locator('.event-row').first()
  for (const width of [1440, 390]) {
    await open(
      '/logs?type=agent.requested&verdict=contradicted',
      async (page) => {
        await rowOf(page).waitFor()
        const text = (await rowOf(page).innerText()).replaceAll(/\s+/g, ' ')
        expect(text).toMatch(/✕ .*contradicted .*GET \/\S+ \d{3}|✕ .*GET \/\S+ \d{3}.* contradicted/)
      },
      width,
    )
    await open(
      '/logs?type=agent.requested&verdict=verified&judgedBy=appliance&outcome=blocked',
      async (page) => {
        await rowOf(page).waitFor()
        expect(await rowOf(page).innerText()).not.toContain('✕')
        await rowOf(page).click()
        await fact(page, 'Status').waitFor()
        expect(await fact(page, 'Status').innerText()).toBe('403')
        expect(await fact(page, 'Method').innerText()).toBe('GET')
        expect(await page.locator('.drawer .why').innerText()).toContain('The response was 403 (forbidden).')
      },
      width,
    )
  }
  await open('/logs?type=agent.requested&verdict=verified&judgedBy=sender', async (page) => {
    await rowOf(page).waitFor()
    expect(await rowOf(page).innerText()).toContain('verified, by sender')
  })
}, 60_000)

test('Sources lists each door with its key and who observed', async () => {
  for (const width of [1440, 390])
    await open(
      '/settings/sources',
      async (page) => {
        const table = page.getByRole('region', { name: 'Doors' })
        await table.waitFor()
        const rows = await table
          .locator('tbody tr')
          .evaluateAll((elements) =>
            elements.map((row) =>
              [...row.querySelectorAll('th, td')].map((cell) => cell.textContent?.trim() ?? ''),
            ),
          )
        expect(rows).toHaveLength(4)
        expect(rows[0]!.slice(0, 1)).toEqual(['Events API'])
        expect(rows[0]![1]).toStartWith('backend')
        expect(rows[0]!.slice(2, 4)).toEqual(['nothing judged', '10,000'])
        expect(rows.map(([door, , observer]) => `${door} ${observer}`).toSorted()).toEqual([
          'Access log its key',
          'Access log this appliance',
          'Events API nothing judged',
          'Events API nothing judged',
        ])
        expect(await page.locator('main img').count()).toBe(0)
        await expectAccessible(page)
        await expectFit(page, `sources-doors-${width}`)
      },
      width,
    )
}, 60_000)
