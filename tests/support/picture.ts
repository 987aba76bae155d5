/** Saves what a test sees as a picture in `out/pictures`, for a person to check. */
import { join } from 'node:path'
import type { Page } from 'playwright'
import { root } from '../../scripts/build.ts'

export async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(root, 'out', 'pictures', `${name}.png`), animations: 'disabled' })
}
