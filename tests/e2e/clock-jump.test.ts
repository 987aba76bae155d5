/** A clock jump in the dashboard: every page shows it to operators, and System confirms the clock after a dialog. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAppliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ownerEnv, signIn, withOwner } from './dashboard-actions.ts'

setDefaultTimeout(120_000)
afterAll(closeBrowser)

const dayMs = 24 * 3_600_000

test('every page shows operators a clock jump until they confirm the clock', async () => {
  using temp = tempDir('clock-jump')
  const dataDir = temp.join('data')
  await (await startAppliance({ dataDir, env: ownerEnv })).stop()
  const path = join(dataDir, 'clock')
  const clockReading = JSON.parse(readFileSync(path, 'utf8')) as { wallMs: number; expectedMs: number }
  const earlier = {
    wallMs: clockReading.wallMs - 400 * dayMs,
    expectedMs: clockReading.expectedMs - 400 * dayMs,
  }
  writeFileSync(path, JSON.stringify({ ...clockReading, ...earlier }))
  await using appliance = await startAppliance({ dataDir, env: ownerEnv })
  await withOwner(appliance.url, async (page) => {
    await page.locator('.overview-list').getByText('400 days ahead of the elapsed time').waitFor()
    const bar = page.locator('.notice-bar')
    expect(await bar.count()).toBe(0)
    await page.getByRole('link', { name: 'Logs', exact: true }).click()
    await bar.waitFor()
    expect(await bar.textContent()).toContain('400 days ahead of the elapsed time')
    await bar.getByRole('link').click()
    await page.getByRole('heading', { name: 'The clock jumped' }).waitFor()
    expect(await bar.count()).toBe(0)
    const shots = process.env['SIGHTGLASS_SHOTS']
    if (shots !== undefined) await shoot(page, shots)
    await page.getByRole('button', { name: 'Confirm clock' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.textContent()).toContain('This cannot be undone')
    if (shots !== undefined) await page.screenshot({ path: join(shots, 'clock-dialog.png') })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Confirm clock' }).click()
    await dialog.getByRole('button', { name: 'Confirm clock' }).click()
    await page.getByRole('heading', { name: 'The clock jumped' }).waitFor({ state: 'detached' })
    await page.getByText('No unconfirmed clock jump.').waitFor()
    await page.goto(appliance.url)
    await page.getByRole('navigation').first().waitFor()
    expect(await page.locator('.notice-bar').count()).toBe(0)
  })
})

/** For a look at it: SIGHTGLASS_SHOTS names a folder. */
async function shoot(page: Parameters<typeof signIn>[0], folder: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1440, 390]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      await page.screenshot({ path: join(folder, `clock-${colorScheme}-${width}.png`) })
    }
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: 'light' })
}
