/** Installs Chromium for browser tests: Debian's package, with apt-get, if it is missing. */
import { existsSync } from 'node:fs'
import { command } from './command.ts'

const chromiumPath = process.env.CHROMIUM || '/usr/bin/chromium'

/** Null if Chromium is installed, else an error with advice. */
export async function ensureChromium(): Promise<string | null> {
  if (existsSync(chromiumPath)) return null
  if (process.env.CHROMIUM) return `CHROMIUM names ${chromiumPath}, which does not exist.`
  const advice = 'Install Chromium (Debian: apt-get install chromium) or set CHROMIUM to its path.'
  if (process.getuid?.() !== 0 || Bun.which('apt-get') === null) {
    return `Browser tests need ${chromiumPath}. ${advice}`
  }
  process.stdout.write('installing Chromium with apt-get …\n')
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  const steps = [
    ['apt-get', 'update'],
    ['apt-get', 'install', '--yes', '--no-install-recommends', 'chromium', 'fonts-liberation'],
  ]
  for (const step of steps) {
    const result = await command(step, { timeoutMs: 10 * 60_000, env })
    if (result.code !== 0) return `${step.join(' ')} failed:\n${result.output.trimEnd()}\n${advice}`
  }
  return existsSync(chromiumPath) ? null : `apt-get did not leave ${chromiumPath}. ${advice}`
}
