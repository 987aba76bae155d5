/** The restore drill of the README, line by line, and the operations guide in a browser. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath, cli, parseListening, startAppliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ingestKey, ownerEnv, send, startWithOwner, withOwner } from './dashboard-actions.ts'
import { expectAccessible } from './pages-actions.ts'

setDefaultTimeout(60_000)
afterAll(closeBrowser)

const root = join(import.meta.dir, '../..')
/** The indented lines behind the words, in a document. */
function linesBehind(words: string, path: string): string[] {
  const text = readFileSync(join(root, path), 'utf8')
  const block = text.slice(text.indexOf(words)).match(/(?:^ {4}.*\n)+/m)?.[0] ?? ''
  return block
    .trimEnd()
    .split('\n')
    .map((line) => line.trim())
}

test('the restore drill of the README restores the events', async () => {
  using dir = tempDir('drill')
  const drill = dir.join('elsewhere')
  mkdirSync(drill)
  {
    await using appliance = await startAppliance({ dataDir: dir.join('data'), env: ownerEnv })
    await send(appliance.url, await ingestKey(appliance), [event('evt_drill_1'), event('evt_drill_2')])
    const { path } = JSON.parse((await appliance.cli('backup', 'create', '--json')).stdout) as {
      path: string
    }
    copyFileSync(path, join(drill, 'nightly.backup'))
    copyFileSync(dir.join('data/secret.key'), join(drill, 'secret.key'))
  }
  const lines = linesBehind('**Restore drill**', 'README.md')
  expect(linesBehind('## Restore', 'server/guide/operations.md')).toEqual(lines)
  expect(lines.map((line) => line.split(' ')[1])).toEqual(['backup', 'restore', 'verify', 'serve'])
  for (const line of lines.slice(0, -1)) {
    const { code, stderr } = await cli(line.split(' ').slice(1), { cwd: drill })
    expect([line, code, stderr]).toEqual([line, 0, ''])
  }
  // Only the port differs: another test may have this one.
  const serve = [binaryPath, ...lines.at(-1)!.split(' ').slice(1), '--listen', '127.0.0.1:0']
  const child = run(serve, { cwd: drill, env: { PATH: process.env.PATH ?? '', HOME: dir.path } })
  const { url } = await child.line(parseListening, 15_000)
  await withOwner(
    `${url}/logs`,
    async (page) => {
      await page.locator('.event-row').nth(1).waitFor()
    },
    { allow: [/401/] },
  )
  child.signal('SIGTERM')
  expect(await child.exited).toBe(0)
})

test('the operations guide opens from Settings, in both themes and on a narrow screen', async () => {
  await using appliance = await startWithOwner()
  for (const colorScheme of ['light', 'dark'] as const) {
    await withOwner(
      `${appliance.url}/settings/system`,
      async (page) => {
        await page.getByRole('link', { name: 'Operations guide' }).click()
        await page.getByRole('heading', { name: 'Operations guide' }).waitFor()
        await page.getByRole('link', { name: 'Options of serve' }).click()
        expect(new URL(page.url()).hash).toBe('#options-of-serve')
        await page.getByRole('heading', { name: 'Options of serve' }).waitFor()
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
        expect(wide).toBeLessThanOrEqual(0)
        await expectAccessible(page)
      },
      { colorScheme, viewport: { width: colorScheme === 'dark' ? 390 : 1280, height: 800 }, allow: [/401/] },
    )
  }
})
