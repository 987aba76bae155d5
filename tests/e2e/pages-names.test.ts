/** Detect and Logs name the bots that came, and say whose clock was ahead. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import { expectFit, goInside } from './pages-actions.ts'

const hourMs = 3_600_000
const nowMs = Date.now()
const hostile = `\u202E<b>bot</b> ${'long '.repeat(36)}`
const bots: [vendor: string | null, name: string | null, purpose: string | null, count: number][] = [
  ['OpenAI', 'GPTBot', 'training', 40],
  ['OpenAI', 'ChatGPT-User', 'user', 30],
  ['OpenAI', 'ChatGPT-User', 'assistant', 2],
  ['OpenAI', 'OAI-SearchBot', 'search', 20],
  ['OpenAI', null, null, 5],
  ['Anthropic', 'ClaudeBot', 'training', 12],
  ['Perplexity', null, null, 4],
  ['=SUM(A1)', hostile, 'a purpose of its own', 3],
  [null, 'Nobody-Bot', null, 1],
]
let org: Organization

beforeAll(async () => {
  org = await newOrganization()
  const events = bots.flatMap(([vendor, name, purpose, count], row) =>
    Array.from({ length: count }, (_, n) =>
      event(`b${row}_${n}`, {
        type: 'agent.detected',
        outcome: 'success',
        sessionId: `s${row}`,
        policy: null,
        tool: null,
        occurredAt: new Date(nowMs - 60_000 - n * hourMs).toISOString(),
        agent: { class: 'crawler', trust: 'detected', vendor, name, purpose },
      }),
    ),
  )
  const ahead = event('ahead', {
    type: 'agent.detected',
    sessionId: 'ahead',
    policy: null,
    tool: null,
    agent: { class: 'dom', trust: 'detected', vendor: 'Operator' },
    occurredAt: new Date(nowMs + 3 * hourMs).toISOString(),
  })
  await send(org.url, org.key, [...events, ahead])
}, 120_000)
afterAll(closeBrowser)

const open = (path: string, visit: (page: Page) => Promise<void>) =>
  withOwner(`${org.url}${path}`, visit, { viewport: { width: 1440, height: 900 } })

test('Detect lists the bots of each vendor and links to their events; an event from a clock ahead says so', async () => {
  await open('/detect?range=7d', async (page) => {
    const rows = page.getByRole('table', { name: 'Agents' }).locator('tbody tr')
    await rows.nth(12).waitFor()
    const cells = await rows.evaluateAll((elements) =>
      elements.map((row) =>
        [...row.children].slice(0, 5).map((cell) => (cell as HTMLElement).innerText.trim()),
      ),
    )
    expect(cells.slice(0, 5)).toEqual([
      ['OpenAI', '3 names', 'training 40, user 30, search 20, assistant 2', 'OpenAI', '97'],
      ['OpenAI', 'GPTBot', 'training', '', '40'],
      ['OpenAI', 'ChatGPT-User', 'user 30, assistant 2', '', '32'],
      ['OpenAI', 'OAI-SearchBot', 'search', '', '20'],
      ['OpenAI', '(no name)', '', '', '5'],
    ])
    expect(cells.find(([vendor]) => vendor === 'Perplexity')).toEqual([
      'Perplexity',
      '',
      '',
      'Perplexity',
      '4',
    ])
    expect(cells.filter(([vendor]) => vendor === '(no vendor)').map((row) => row[1])).toEqual([
      '1 name',
      'Nobody-Bot',
    ])
    await page.getByRole('table', { name: 'Agents' }).scrollIntoViewIfNeeded()
    await expectFit(page, 'detect-names')
    await page.getByRole('link', { name: 'ChatGPT-User' }).last().click()
    await page.waitForURL(/\/logs\?.*name=ChatGPT-User/)
    await page
      .getByText(/^32 events/)
      .first()
      .waitFor()
    const clockText = page.getByText(/The sender's clock is 3 h ahead/)
    await goInside(page, '/logs?event=ahead')
    await clockText.waitFor()
    await goInside(page, '/logs')
    await clockText.waitFor({ state: 'detached' })
    const row = page.getByRole('row').filter({ hasText: 'Operator' })
    await row.getByText('3 h ahead').waitFor()
    await row.click()
    await clockText.waitFor()
    await expectFit(page, 'logs-ahead')
  })
}, 60_000)
