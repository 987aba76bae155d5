/** Saves what a test sees as a picture in `out/pictures`, for a person to check, if SIGHTGLASS_PICTURES is 1. */
import { join } from 'node:path'
import type { Page } from 'playwright'
import { root } from '../../scripts/build.ts'

export const takesPictures = process.env['SIGHTGLASS_PICTURES'] === '1'

export async function picture(page: Page, name: string): Promise<void> {
  if (!takesPictures) return
  await page.screenshot({ path: join(root, 'out', 'pictures', `${name}.png`), animations: 'disabled' })
}
