/** Helpers of the page tests: pushing, axe-core, and the page in the other theme. */
import { expect } from 'bun:test'
import axe from 'axe-core'
import type { Page } from 'playwright'
import { event } from '../support/events.ts'

/** One type for each page of counts. */
export const countedTypes = [
  'agent.detected',
  'auth.identity_presented',
  'authz.evaluated',
  'tool.executed',
  'memory.accessed',
]

/** Pushes tools or memory; throws unless it was accepted. */
export async function push(url: string, key: string, path: string, body: unknown): Promise<void> {
  const answer = await fetch(`${url}/v1/sdk/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 202) throw new Error(`${answer.status} ${await answer.text()}`)
}

/** An event of the current hour, which every range contains. */
export function recent(id: string, more: Record<string, unknown>, agoMs = 1_000): Record<string, unknown> {
  return event(id, { occurredAt: new Date(Date.now() - agoMs).toISOString(), ...more })
}

/** Waits for the page of this name. */
export async function waitForHeading(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor()
}

interface AxeResult {
  id: string
  help: string
  nodes: { html: string; failureSummary?: string }[]
}

/** Fails with the rule and the element on any violation that axe-core finds in the page as it is shown now. */
export async function expectAccessible(page: Page, rules: string[] = []): Promise<void> {
  // Through the debugger, because the page's policy forbids foreign scripts; once per document.
  if (!(await page.evaluate(() => Reflect.has(window, 'axe')))) await page.evaluate(axe.source)
  const found = await page.evaluate(async (only) => {
    const runner = Reflect.get(window, 'axe') as {
      run(options: object): Promise<{ violations: AxeResult[] }>
    }
    const runOnly = only.length === 0 ? {} : { runOnly: { type: 'rule', values: only } }
    const { violations } = await runner.run({ resultTypes: ['violations'], ...runOnly })
    return violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
    )
  }, rules)
  expect(found).toEqual([])
}

/** The rules about colours: nothing else differs between the themes. */
const colourRules = ['color-contrast', 'link-in-text-block']

/** Every rule in the light theme, then the rules about colours in the dark one. */
export async function expectAccessibleInBothThemes(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' })
  await expectAccessible(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await expectAccessible(page, colourRules)
}

/** Nothing stretches the page beyond the view. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const sizes = await page.locator('main').evaluate((main) => [main.scrollWidth, main.clientWidth])
  expect(sizes[0]).toBeLessThanOrEqual(sizes[1] ?? 0)
}

/** Parses a shown number: "≈ 1,034" is 1034. */
export function numberIn(text: string | null): number {
  return Number((text ?? '').replace(/[^0-9]/g, ''))
}
