/** Helpers of the page tests: pushing, axe-core, and the page in the other theme. */
import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Result } from 'axe-core'
import type { Locator, Page } from 'playwright'
import { event } from '../support/events.ts'
import { picture, takesPictures } from '../support/picture.ts'

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
export function recent(id: string, fields: Record<string, unknown>, agoMs = 1_000): Record<string, unknown> {
  return event(id, { occurredAt: new Date(Date.now() - agoMs).toISOString(), ...fields })
}

/** Waits for the page of this name. */
export async function waitForHeading(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor()
}

/** Opens a page of the dashboard without loading the document again, as a link does. */
export async function goInside(page: Page, path: string): Promise<void> {
  await page.evaluate((target) => {
    history.pushState(null, '', target)
    dispatchEvent(new PopStateEvent('popstate'))
  }, path)
}

/** Presses Tab until the focused element has this name; fails when it never comes or the focus cannot be seen. */
export async function tabTo(page: Page, name: string): Promise<void> {
  const passed: string[] = []
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement
      const label =
        element.ariaLabel ??
        (element instanceof HTMLInputElement ? element.labels?.[0]?.textContent : element.textContent)
      const shown =
        element instanceof HTMLInputElement && element.type === 'radio' ? element.nextElementSibling : element
      return { name: (label ?? '').trim(), outline: getComputedStyle(shown ?? element).outlineStyle }
    })
    passed.push(focused.name)
    if (focused.outline === 'none') throw new Error(`the focus on "${focused.name}" cannot be seen`)
    if (focused.name === name) return
  }
  throw new Error(`Tab never came to "${name}", only to ${JSON.stringify(passed)}`)
}

/** Nothing stretches the page at both widths. Takes a picture in every theme, if asked for. */
export async function expectFit(page: Page, name: string): Promise<void> {
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 })
    const isWhole = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)
    expect([name, width, isWhole]).toEqual([name, width, true])
    if (!takesPictures) continue // drawing the page anew in each theme costs as much as opening it
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme })
      await picture(page, `${name}-${width}-${colorScheme}`)
    }
  }
}

const axeSource = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

/** Fails with the rule and the element on any violation that axe-core finds in the page or element as shown now. */
export async function expectAccessible(shown: Page | Locator, rules: string[] = []): Promise<void> {
  const isPage = 'goto' in shown
  const page = isPage ? shown : shown.page()
  // Through the debugger, because the page's policy forbids foreign scripts; once per document.
  if (!(await page.evaluate(() => Reflect.has(window, 'axe')))) await page.evaluate(axeSource)
  // A colour on its way to another one is nobody's: transitions end first.
  await page.evaluate(() => Promise.allSettled(document.getAnimations().map(({ finished }) => finished)))
  const findings = await (isPage ? shown.locator('html') : shown).evaluate(async (element, only) => {
    const runner = Reflect.get(window, 'axe') as {
      run(element: Element, options: object): Promise<{ violations: Result[] }>
    }
    const runOnly = only.length === 0 ? {} : { runOnly: { type: 'rule', values: only } }
    // The dashboard has no frame, and no rule in use reads style sheets.
    const options = { resultTypes: ['violations'], preload: false, iframes: false, ...runOnly }
    const { violations } = await runner.run(element, options)
    return violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
    )
  }, rules)
  expect(findings.map((violation) => `${new URL(page.url()).pathname}: ${violation}`)).toEqual([])
}

/** The rules about colours: nothing else differs between the themes. */
const colourRules = ['color-contrast', 'link-in-text-block']

/** Every rule in the light theme, then the rules about colours in the dark one, there perhaps of a part only. */
export async function expectAccessibleInBothThemes(
  shown: Page | Locator,
  shownInDark: Page | Locator = shown,
): Promise<void> {
  const page = 'goto' in shown ? shown : shown.page()
  await page.emulateMedia({ colorScheme: 'light' })
  await expectAccessible(shown)
  await page.emulateMedia({ colorScheme: 'dark' })
  await expectAccessible(shownInDark, colourRules)
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
