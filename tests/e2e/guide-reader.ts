/** Follows a guide as its reader: opens the page in Chromium, creates the keys in it, and runs its code blocks. */
import { expect } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Appliance } from '../support/binary.ts'
import { withPage } from '../support/browser.ts'
import { run, type Running } from '../support/process.ts'
import type { TempDir } from '../support/temp-dir.ts'
import { owner } from './dashboard-actions.ts'

export interface Guide {
  /** The text of each code block, with the new keys in it. */
  blocks: string[]
  /** `python3 main.py` of "run `python3 main.py`". */
  commands: string[]
}

/** As the owner of the appliance, whose server was started with `ownerEnv`. */
export async function readGuide({ url }: Appliance, name: string): Promise<Guide> {
  return withPage(
    `${url}/docs/${name}`,
    async (page) => {
      await page.locator('[data-keys] button').click()
      await page.getByText('Created for the organization').waitFor()
      expect(await page.locator('[data-keys] button').count()).toBe(0)
      const blocks = await page.locator('.example pre').allTextContents()
      const text = blocks.join('\n')
      expect(text).not.toContain('your-key')
      expect(text).toContain(url)
      await page.locator('.example button').last().click()
      await page.locator('.example').getByText('Copied').waitFor()
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(blocks.at(-1)!)
      const guide = await page.locator('main').innerHTML()
      return {
        blocks,
        commands: [...guide.matchAll(/\brun <code>([^<&]+)<\/code>/g)].map(([, line]) => line!),
      }
    },
    { as: owner },
  )
}

export function save(dir: TempDir, path: string, text: string): void {
  mkdirSync(dirname(dir.join(path)), { recursive: true })
  writeFileSync(dir.join(path), `${text}\n`)
}

/** Runs a block in a shell until it ends or is signalled, at most a minute. */
export function shell(block: string, cwd: string, env: Record<string, string>): Running {
  // `timeout` passes a signal on to all processes of the shell.
  return run(['timeout', '60', 'bash', '-ec', block], { cwd, env })
}

/** Its output. Throws when the block fails. */
export async function output(block: string, cwd: string, env: Record<string, string>): Promise<string> {
  const child = shell(block, cwd, env)
  const code = await child.exited
  if (code !== 0) throw new Error(`${block}\n${code}\n${child.stdout()}\n${child.stderr()}`)
  return child.stdout()
}
