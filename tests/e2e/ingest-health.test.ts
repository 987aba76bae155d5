/** Settings → Ingest health in a real browser: empty at first, then equal to a mixed storm; bodies shown as text. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { newOrganization, type Organization, withOwner } from './dashboard-actions.ts'

let org: Organization
beforeAll(async () => {
  org = await newOrganization()
}, 120_000)
afterAll(closeBrowser)

type Sums = [requests: number, refused: number, accepted: number, deduped: number, rejected: number]
const plus = (a: Sums, b: Sums): Sums => a.map((n, i) => n + b[i]!) as Sums

const markup = '<img src=x onerror=alert(1)>'
const good = (id: string) => event(id, { occurredAt: new Date().toISOString() })
const bad = (id: string) => ({ ...event(id), type: markup })

/** Kinds of requests, and what each adds to the sums. */
const kinds: ((n: string) => [body: unknown, sums: Sums, type?: string])[] = [
  (n) => [
    { events: [{ ...good(`a${n}`), session_Id: 1, latencyMs: 1, durationMs: undefined }, good(`b${n}`)] },
    [1, 0, 2, 0, 0],
  ],
  (n) => [{ events: [good(`c${n}`), good(`c${n}`)] }, [1, 0, 1, 1, 0]],
  (n) => [{ events: [good(`d${n}`), bad(`e${n}`)] }, [1, 0, 1, 0, 1]],
  (n) => [{ events: [bad(`f${n}`), bad(`g${n}`)] }, [1, 1, 0, 0, 2]],
  () => ['{"events":', [1, 1, 0, 0, 0]],
  () => [{ events: [] }, [1, 1, 0, 0, 0]],
  (n) => [`${JSON.stringify(good(`h${n}`))}\n{"id":\n`, [1, 0, 1, 0, 1], 'application/x-ndjson'],
  () => ['\n', [1, 1, 0, 0, 0], 'application/x-ndjson'],
]

async function post(key: string, body: unknown, extraHeaders: Record<string, string> = {}): Promise<void> {
  const answer = await fetch(`${org.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...extraHeaders },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  await answer.text()
}

/** The numbers of each row of a table from a column on, by the text that identifies the row. */
async function numbers(page: Page, table: string, from: number): Promise<Map<string, number[]>> {
  const rows = await page
    .getByRole('table', { name: table })
    .locator('tbody tr')
    .evaluateAll((elements) => elements.map((row) => [...row.children].map((cell) => cell.textContent ?? '')))
  const read = (text: string) => Number(text.replaceAll(',', ''))
  return new Map(rows.map((cells) => [cells[table === 'Keys' ? 0 : 1]!, cells.slice(from).map(read)]))
}

async function facts(page: Page): Promise<number[]> {
  const texts = await page.getByLabel('Totals').locator('dd').allInnerTexts()
  return texts.map((text) => Number(text.replaceAll(',', '')))
}

test('empty at first, then equal to the requests sent, with rejected requests and senders that need attention', async () => {
  const [firstKey, two] = await Promise.all([org.makeKey('ingest', 'one'), org.makeKey('ingest', 'two')])
  await withOwner(`${org.url}/settings/ingest-health`, async (page) => {
    await page.getByText('No requests in this time range.').waitFor()
    expect(await page.getByText('No rejected requests or events.').isVisible()).toBe(true)
    expect(await page.getByLabel('Needs attention').innerText()).toContain('one: never used.')

    const sums: { [label: string]: Sums } = { one: [0, 0, 0, 0, 0], two: [0, 0, 0, 0, 0] }
    await Promise.all(
      Array.from({ length: 120 }, async (_, n) => {
        const label = n % 3 === 0 ? 'two' : 'one'
        const [body, added, type] = kinds[n % kinds.length]!(`${n}`)
        sums[label] = plus(sums[label]!, added)
        await post(label === 'two' ? two : firstKey, body, type === undefined ? {} : { 'content-type': type })
      }),
    )
    await org.makeKey('ingest', 'idle')
    const late = await org.makeKey('ingest', 'late')
    const old = event('old', { occurredAt: new Date(Date.now() - 3 * 3_600_000).toISOString() })
    await post(late, { events: [old] })
    await post(two, { events: [good('from a page')] }, { origin: 'https://shop.example' }) // refused before it counts
    const allSums = plus(plus(sums['one']!, sums['two']!), [1, 0, 1, 0, 0])

    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByLabel('Totals').waitFor()
    expect(await facts(page)).toEqual(allSums)
    const [, , accepted, deduped, rejected] = allSums
    const chart = page.getByRole('img', { name: /^Events per hour: / })
    expect(await chart.getAttribute('aria-label')).toBe(
      `Events per hour: ${accepted} accepted, ${deduped} deduplicated, ${rejected} rejected`,
    )
    const keys = await numbers(page, 'Keys', 5)
    for (const label of ['one', 'two']) expect(keys.get(label)).toEqual(sums[label]!.slice(2))
    expect(keys.get('idle')).toEqual([0, 0, 0])

    const warnings = await page.getByLabel('Needs attention').locator('li').allInnerTexts()
    const has = (text: RegExp) => warnings.some((warning) => text.test(warning))
    expect([
      has(/^two: sent from a browser/),
      has(/^late: clock 3 h behind/),
      has(/^idle: never used/),
    ]).toEqual([true, true, true])
    expect(has(/^one: (never|clock|sent)/)).toBe(false)

    expect(has(/unknown field latencyMs\. Did you mean durationMs\?/)).toBe(true)
    const misses = page.getByRole('table', { name: 'Unknown fields' })
    expect(await misses.innerText()).toMatch(/one\s+latencyMs\s+durationMs\s+\d+/)

    const row = page.getByRole('row').filter({ hasText: 'wrong_format at type' }).first()
    await row.locator('summary').click()
    expect(await row.locator('pre').innerText()).toContain(markup)
    expect(await page.locator('.rejected-table img').count()).toBe(0)
    expect(await page.locator('.rejected-table tbody tr').count()).toBeGreaterThan(50)
    await page.getByLabel('Time range').selectOption('Last 7 days')
    await page.getByText(/Events per hour/).waitFor()
    expect(await facts(page)).toEqual(allSums)
    const hours = await page.getByRole('table', { name: 'By hour and key' }).locator('tbody tr').count()
    expect(hours).toBeGreaterThanOrEqual(3)
  })
}, 90_000)
