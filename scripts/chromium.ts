/** Finds and installs the Chromium of browser tests: Debian's package, with apt-get, if it is missing. */
import { existsSync } from 'node:fs'
import { command } from './command.ts'

/** Chromium without the window of the browser: the same engine for two thirds of the processor time. */
const shellPath = '/usr/bin/chromium-headless-shell'
const fullPath = '/usr/bin/chromium'

/** The executable that tests start. `CHROMIUM` names another one. */
export function chromiumPath(): string {
  return process.env.CHROMIUM || (existsSync(shellPath) ? shellPath : fullPath)
}

/** Null if Chromium is installed, else an error with advice. */
export async function ensureChromium(): Promise<string | null> {
  const advice =
    'Install Chromium (Debian: apt-get install chromium-headless-shell) or set CHROMIUM to its path.'
  if (process.env.CHROMIUM) {
    return existsSync(process.env.CHROMIUM)
      ? null
      : `CHROMIUM names ${process.env.CHROMIUM}, which does not exist.`
  }
  if (existsSync(shellPath)) return null
  const mayInstall = process.getuid?.() === 0 && Bun.which('apt-get') !== null
  const failure = mayInstall ? await install() : null
  if (existsSync(shellPath)) return null
  if (existsSync(fullPath)) {
    process.stdout.write(`Browser tests use ${fullPath}. With chromium-headless-shell they take less time.\n`)
    return null
  }
  return `${failure ?? 'Browser tests need Chromium.'} ${advice}`
}

/** Null, or what failed. */
async function install(): Promise<string | null> {
  process.stdout.write('installing chromium-headless-shell with apt-get …\n')
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  // Without a network the tests soon run with the Chromium that is there.
  const options = ['-o', 'Acquire::Retries=0', '-o', 'Acquire::http::Timeout=20']
  const packages = ['--yes', '--no-install-recommends', 'chromium-headless-shell', 'fonts-liberation']
  for (const step of [['update'], ['install', ...packages]]) {
    const result = await command(['apt-get', ...options, ...step], { timeoutMs: 5 * 60_000, env })
    if (result.code !== 0) return `apt-get ${step[0]} failed:\n${result.output.trimEnd()}\n`
  }
  return null
}
