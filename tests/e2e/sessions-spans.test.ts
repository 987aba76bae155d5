/** The spans of a session in a browser: their tree, bars, hostile names and a circle of parents. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import genAi from '../../server/otlp/fixtures/composed/gen-ai.json'
import { closeBrowser } from '../support/browser.ts'
import { tracesRequest } from '../support/otlp.ts'
import { picture } from '../support/picture.ts'
import { newOrganization, type Organization, withOwner } from './dashboard-actions.ts'
import { expectAccessible } from './pages-actions.ts'

let org: Organization
let key: string
beforeAll(async () => {
  org = await newOrganization()
  key = org.key
}, 120_000)
afterAll(closeBrowser)

async function send(request: object): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(`${org.url}/v1/traces`, {
    method: 'POST',
    headers,
    body: JSON.stringify(request),
  })
  expect([answer.status, await answer.text()]).toEqual([200, '{}'])
}

const tool = { 'gen_ai.operation.name': 'execute_tool', 'session.id': 'odd' }
const markup = '<img src=x onerror=alert(1)>\u202e'

test('the tree of a session, with times, in a table that a screen reader reads', async () => {
  await send(genAi)
  await withOwner(`${org.url}/sessions?session=conv_5j66`, async (page) => {
    const lines = page.getByRole('table', { name: 'Spans' }).locator('tbody tr')
    await lines.nth(7).waitFor()
    const cells = await lines.evaluateAll((elements) =>
      elements.map((row) => [...row.children].map((cell) => cell.textContent ?? '').slice(1, 5)),
    )
    expect(cells.slice(0, 3)).toEqual([
      ['invoke_agent Planner', '1', '0', '900 ms'],
      ['execute_tool get_weather', '2', '+2 ms', '120 ms'],
      ['execute_tool book', '2', '+3 ms', '120 ms'],
    ])
    expect(await lines.count()).toBe(8)
    const bars = await lines
      .locator('.span-bar > i')
      .evaluateAll((elements) => elements.map((bar) => bar.getBoundingClientRect().width))
    expect(bars[0]! / bars[1]!).toBeGreaterThan(7)
    await expectAccessible(page)
    await picture(page, 'session-spans')
  })
}, 60_000)

test('hostile names are text, and a circle of parents has a row for each span', async () => {
  const ids = ['a', 'b', 'c'].map((letter) => letter.repeat(16))
  const spans = ids.map((spanId, n) => ({
    spanId,
    parentSpanId: ids[(n + 1) % 3]!,
    name: markup,
    attributes: tool,
  }))
  await send(tracesRequest(spans, 'odd'))
  await withOwner(`${org.url}/sessions?session=odd`, async (page) => {
    const names = page.getByRole('table', { name: 'Spans' }).locator('.span-name')
    await names.nth(2).waitFor()
    expect(await names.count()).toBe(3)
    expect(await names.first().textContent()).toContain('<img src=x')
    expect(await page.locator('img[src="x"]').count()).toBe(0)
  })
}, 60_000)
