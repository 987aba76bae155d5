/** Settings → Evidence, before and after an update, and the verdict of an event with its evidence in Logs. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { packFileText } from '../../server/evidence/pack-file.ts'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { tempDir } from '../support/temp-dir.ts'
import { startWithOwner, withOwner } from './dashboard-actions.ts'
import { expectAccessibleInBothThemes, goInside } from './pages-actions.ts'

setDefaultTimeout(90_000)

const files = tempDir('evidence-page')
let appliance: Appliance
beforeAll(async () => {
  appliance = await startWithOwner()
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  files.remove()
})

const bundled = join(import.meta.dir, '../../server/evidence/bundled-pack.json')

/** The bundled pack with hostile names and a list that was last seen long ago. */
function hostilePack(): string {
  const { signature: _, ...pack } = JSON.parse(readFileSync(bundled, 'utf8')) as EvidencePack & {
    signature: unknown
  }
  const [first, ...otherLists] = pack.lists
  const hostile = {
    ...first!,
    list: '<b>list</b>',
    operator: '<img src=x onerror=alert(1)>',
    seen: '2020-01-01',
  }
  const path = files.join('hostile.json')
  writeFileSync(
    path,
    packFileText({ ...pack, made: new Date().toISOString(), lists: [hostile, ...otherLists] }, null),
  )
  return path
}

test('Settings shows each list, and the pack that replaced the bundled one', async () => {
  await withOwner(`${appliance.url}/settings/evidence`, async (page) => {
    const body = page.locator('.settings-body')
    await body.getByText('part of this release, signed with the release key').waitFor()
    const row = body.getByRole('row').filter({ hasText: 'gptbot.json' })
    expect((await row.innerText()).replaceAll(/\s+/g, ' ')).toMatch(
      /^gptbot GPTBot OpenAI 17 networks 2025-10-30 2026-08-20 openai\.com\/gptbot\.json$/,
    )
    for (const entries of ['1 host name', '2 host names', '1 key'])
      await body.getByRole('cell', { name: entries, exact: true }).first().waitFor()
    const table = body.locator('.table-panel')
    expect(await table.evaluate((panel) => panel.scrollWidth - panel.clientWidth)).toBe(0)
    await picture(page, 'settings-evidence')
    const { code, stderr } = await appliance.cli('evidence', 'update', hostilePack(), '--trust')
    expect([code, stderr]).toEqual([0, ''])
    await page.reload()
    await body.getByText('replaced, not signed').waitFor()
    await body.getByText('1 address list last seen more than 180 days ago').waitFor()
    await body.getByText('<b>list</b>').waitFor()
    await expectAccessibleInBothThemes(body)
    await appliance.cli('evidence', 'update', '--bundled')
  })
})

test('Logs filters by verdict and explains it', async () => {
  const userAgent = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
  const now = new Date()
  const clock = `${now.toUTCString().slice(5, 16).replaceAll(' ', '/')}:${now.toISOString().slice(11, 19)} +0000`
  const line = (address: string, page: string): string =>
    `${address} - - [${clock}] "GET ${page} HTTP/1.1" 200 5 "-" "${userAgent}"\n`
  writeFileSync(files.join('a.log'), line('132.196.86.5', '/true') + line('203.0.113.9', '/false'))
  const { code, stderr } = await appliance.cli(
    'import',
    'access',
    files.join('a.log'),
    '--site',
    'shop',
    '--keep-addresses',
  )
  expect([code, stderr]).toEqual([0, ''])
  await withOwner(`${appliance.url}/logs?type=agent.requested&verdict=contradicted`, async (page) => {
    await page.getByText('/false').first().waitFor()
    expect(await page.getByText('/true').count()).toBe(0)
    await page.getByText('/false').first().click()
    const drawer = page.getByRole('complementary', { name: 'Event' })
    await drawer.getByText('OpenAI publishes 17 networks.').waitFor()
    const facts = await drawer.locator('.facts').innerText()
    expect(facts).toContain('The address, in 203.0.113.0/24, is not in any of them.')
    expect(facts.replaceAll(/\s+/g, ' ')).toContain('by the list gptbot of 2025-10-30')
    await expectAccessibleInBothThemes(drawer)
    await picture(page, 'logs-verdict')
    await goInside(page, '/logs?type=agent.requested&verdict=verified')
    await page.getByText('/true').first().click()
    await drawer.getByText('is in a network that OpenAI publishes.').waitFor()
  })
})
