/** What the tests of the dashboard's pages share: pushing, a look by axe-core, the page in the other theme. */
import { expect } from 'bun:test'
import axe from 'axe-core'
import type { Page } from 'playwright'
import { event } from '../support/events.ts'
import { signIn } from './dashboard-actions.ts'

/** One type for each page of counts. */
export const countedTypes = [
  'agent.detected',
  'auth.identity_presented',
  'authz.evaluated',
  'tool.executed',
  'memory.accessed',
]

/** Pushes tools or memory; throws unless it was taken. */
export async function push(url: string, key: string, path: string, body: unknown): Promise<void> {
  const answer = await fetch(`${url}/v1/sdk/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 202) throw new Error(`${answer.status} ${await answer.text()}`)
}

/** An event of this very hour, so that every range holds it. */
export function recent(id: string, more: Record<string, unknown>, agoMs = 1_000): Record<string, unknown> {
  return event(id, { occurredAt: new Date(Date.now() - agoMs).toISOString(), ...more })
}

/** Signs in and waits for the page of this name. */
export async function enter(page: Page, name: string): Promise<void> {
  await signIn(page)
  await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor()
}

interface AxeResult {
  id: string
  help: string
  nodes: { html: string; failureSummary?: string }[]
}

/** Fails with the rule and the element on any violation that axe-core finds in what is shown now. */
export async function expectAccessible(page: Page): Promise<void> {
  // Through the debugger: the page's own policy lets no foreign script in.
  await page.evaluate(axe.source)
  const found = await page.evaluate(async () => {
    const runner = Reflect.get(window, 'axe') as { run(): Promise<{ violations: AxeResult[] }> }
    const { violations } = await runner.run()
    return violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
    )
  })
  expect(found).toEqual([])
}

/** The same page in both themes. */
export async function expectAccessibleInBothThemes(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await expectAccessible(page)
  }
}

/** Nothing stretches the page beyond the view. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const sizes = await page.locator('main').evaluate((main) => [main.scrollWidth, main.clientWidth])
  expect(sizes[0]).toBeLessThanOrEqual(sizes[1] ?? 0)
}

/** A shown number: "≈ 1,034" is 1034. */
export function numberIn(text: string | null): number {
  return Number((text ?? '').replace(/[^0-9]/g, ''))
}
