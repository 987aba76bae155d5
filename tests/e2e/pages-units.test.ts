/** In the browser the numbers of sites, agents and pages are those of a plan: requests, else visits, never both. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import {
  beforeOf,
  countBy,
  inRange,
  lastDays,
  planTraffic,
  type Plan,
  type Planned,
} from '../support/known-traffic.ts'
import { newOrganization, send, withOwner, type Organization } from './dashboard-actions.ts'
import { expectFit, goInside, numberIn } from './pages-actions.ts'

let org: Organization
let plan: Plan

beforeAll(async () => {
  org = await newOrganization()
  plan = planTraffic(Date.now())
  const logged = await fetch(`${org.url}/v1/sdk/access-logs?siteId=shop`, {
    method: 'POST',
    headers: { authorization: `Bearer ${org.key}`, 'content-type': 'text/plain' },
    body: plan.log,
  })
  expect(await logged.json()).toMatchObject({ ok: true, bad: 0 })
  await send(org.url, org.key, plan.events)
}, 120_000)
afterAll(closeBrowser)

const planned = (isWanted: (one: Planned) => boolean) => inRange(plan, lastDays(Date.now()), isWanted)
const ofType = (type: Planned['type'], siteId: string) => (one: Planned) =>
  one.type === type && (siteId === '' || one.siteId === siteId)

/** Waits until the first headline has this name and number, and returns its note. */
async function firstHeadline(page: Page, name: string, count: number): Promise<string> {
  const line = page.locator('.headlines > div').first()
  const shown = count.toLocaleString('en-GB')
  await line.locator('strong', { hasText: new RegExp(`^${shown}$`) }).waitFor()
  expect(await line.locator('dt span').first().innerText()).toBe(name)
  return (await line.locator('small').innerText()).replaceAll(/\s+/g, ' ')
}

async function bars(page: Page, title: string): Promise<{ unit: string; rows: Record<string, number> }> {
  const panel = page.locator('.bars', { has: page.getByRole('heading', { name: title, exact: true }) })
  const unit = await panel.locator('header small').innerText()
  const rows = await panel
    .locator('li')
    .evaluateAll((all) =>
      all.map((row) => [
        (row.querySelector('.bar-name') as HTMLElement).innerText.trim(),
        row.querySelector('b')?.textContent ?? '',
      ]),
    )
  return { unit, rows: Object.fromEntries(rows.map(([name, count]) => [name, numberIn(count ?? '')])) }
}

/** Head and rows of the file that a table saves. Names of the plan need no quotes. */
async function csvOf(page: Page, table: string): Promise<string[][]> {
  const panel = page.locator('.data-panel', {
    has: page.getByRole('heading', { name: table, exact: true }),
  })
  const saved = page.waitForEvent('download')
  await panel.getByRole('button', { name: 'Save as CSV' }).click()
  const text = readFileSync(await (await saved).path(), 'utf8').replace('\ufeff', '')
  const lines = text.trimEnd().split('\n')
  return lines.map((line) =>
    line.replaceAll(/"([^"]*)"/g, (_, cell: string) => cell.replaceAll(',', ';')).split(','),
  )
}

async function inNavigation(page: Page): Promise<{ count: number; title: string }> {
  const small = page
    .locator('.navigation.wide')
    .getByRole('link', { name: 'Detect', exact: true })
    .locator('small')
  return { count: numberIn(await small.innerText()), title: (await small.getAttribute('title')) ?? '' }
}

const sites = [
  { site: 'shop', type: 'agent.requested', unit: 'Requests' },
  { site: 'blog', type: 'agent.detected', unit: 'Visits' },
  { site: '', type: 'agent.requested', unit: 'Requests' },
] as const

test.each(sites)(
  'Analytics with its files, Detect and the navigation of "$site"',
  async ({ site, type, unit }) => {
    const search = site === '' ? '?range=7d' : `?range=7d&siteId=${site}`
    await withOwner(`${org.url}/analytics${search}`, async (page) => {
      const counted = planned(ofType(type, site))
      const before = inRange(plan, beforeOf(lastDays(Date.now())), ofType(type, site)).length
      const note = await firstHeadline(page, unit, counted.length)
      expect(note).toContain(`from ${before}`)
      const beside = `${planned(ofType('agent.detected', 'blog')).length} visits at 1 site without requests`
      expect(note.includes(beside)).toBe(site === '')
      const word = unit.toLowerCase()
      expect(await bars(page, 'Pages')).toEqual({ unit: word, rows: countBy(counted, 'page') })
      expect(await bars(page, 'Vendors')).toEqual({ unit: word, rows: countBy(counted, 'vendor') })
      await page.getByRole('heading', { name: `${unit} per 3 hours, by outcome` }).waitFor()

      const [head = [], ...outcomes] = await csvOf(page, 'Outcomes')
      expect(head[1]).toBe(unit)
      expect(Object.fromEntries(outcomes.map(([name = '', count]) => [name, Number(count)]))).toEqual(
        countBy(counted, 'outcome'),
      )
      const [, ...types] = await csvOf(page, 'Types')
      const row = types.find(([name]) => name === type)
      expect(row?.slice(0, 3)).toEqual([type, word, `${counted.length}`])

      if (site === '') await expectFit(page, 'analytics-units')
      expect(await inNavigation(page)).toMatchObject({ count: counted.length })
      expect((await inNavigation(page)).title).toContain(`${counted.length} ${word} in the last 7 days`)
      await goInside(page, `/detect${search}`)
      await page.getByRole('heading', { name: 'Detect', level: 1 }).waitFor()
      await firstHeadline(page, unit, counted.length)
      if (unit === 'Visits') return
      await page.getByRole('table', { name: 'Requests by agent' }).waitFor()
      const [agentHead = [], ...agents] = await csvOf(page, 'Requests by agent')
      const column = agentHead.findIndex((name) => name === 'Requests')
      expect(agents.reduce((sum, cells) => sum + Number(cells[column]), 0)).toBe(counted.length)
    })
  },
  90_000,
)

test('Overview shows requests first, and visits, referrals and calls as numbers of their own', async () => {
  await withOwner(`${org.url}/overview`, async (page) => {
    await firstHeadline(page, 'Requests', planned(ofType('agent.requested', '')).length)
    const lines = await page
      .locator('.headlines > div')
      .evaluateAll((all) =>
        all.map((line) => [
          line.querySelector('dt span')?.textContent ?? '',
          line.querySelector('strong')?.textContent ?? '',
        ]),
      )
    const shown = Object.fromEntries(lines.map(([name, value]) => [name, numberIn(value ?? '')]))
    const outcome = (type: Planned['type'], wanted: Planned['outcome']) =>
      planned((one) => one.type === type && one.outcome === wanted).length
    expect(shown).toEqual({
      Requests: planned(ofType('agent.requested', '')).length,
      Refused: outcome('agent.requested', 'blocked'),
      Failed: outcome('agent.requested', 'error'),
      Visits: planned(ofType('agent.detected', '')).length,
      Referrals: planned(ofType('agent.referred', '')).length,
      Decisions: planned(ofType('authz.evaluated', '')).length,
      Blocked: outcome('authz.evaluated', 'blocked'),
      'Tool calls': planned(ofType('tool.executed', '')).length,
      'Tool errors': outcome('tool.executed', 'error'),
    })
    await page.getByRole('heading', { name: 'Activity per 3 hours, by kind' }).waitFor()
    await expectFit(page, 'overview-units')
  })
}, 90_000)
