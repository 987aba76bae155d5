/** `bun scripts/pictures.ts`: takes the README's screenshots of the dashboard, light and dark, with sample data. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { startAppliance } from '../tests/support/binary.ts'
import { closeBrowser, withPage } from '../tests/support/browser.ts'
import { ownerEnv, signIn } from '../tests/e2e/dashboard-actions.ts'
import type { Page } from 'playwright'
import { root } from './build.ts'

const folder = 'server/guide/pictures'
const address = '/detect'
const bytesMax = 300_000

await using appliance = await startAppliance({ env: ownerEnv })
const filled = await appliance.cli('demo', '--seed', '1')
if (filled.code !== 0) throw new Error(filled.stderr)

try {
  for (const colorScheme of ['light', 'dark'] as const) {
    const path = join(folder, `dashboard-${colorScheme}.png`)
    await withPage(
      appliance.url,
      async (page) => {
        await signIn(page)
        await page.goto(`${appliance.url}${address}`)
        await page.locator('main canvas').first().waitFor()
        await quiet(page)
        await page.evaluate(() => document.fonts.ready)
        await page.screenshot({ path: join(root, path), animations: 'disabled', caret: 'hide' })
      },
      { colorScheme, viewport: { width: 1440, height: 900 }, context: { reducedMotion: 'reduce' } },
    )
    const { size } = statSync(join(root, path))
    if (size > bytesMax) throw new Error(`${path} has ${size} bytes, at most ${bytesMax} are allowed`)
    process.stdout.write(`${path} ${Math.round(size / 1000)} KB\n`)
  }
} finally {
  await closeBrowser()
}

/** Resolves after 1 s without a response. The live stream never ends, so Playwright never reaches `networkidle`. */
async function quiet(page: Page): Promise<void> {
  let lastMs = performance.now()
  page.on('response', () => (lastMs = performance.now()))
  while (performance.now() - lastMs < 1_000) await Bun.sleep(50)
}
