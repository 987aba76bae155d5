/** Finds the Chromium of browser tests: Debian's package, or the one that `CHROMIUM` names. */
import { existsSync } from 'node:fs'

/** Chromium without the window of the browser: the same engine for two thirds of the processor time. */
const shellPath = '/usr/bin/chromium-headless-shell'
const fullPath = '/usr/bin/chromium'

/** The executable that tests start. `CHROMIUM` names another one. */
export function chromiumPath(): string {
  return process.env.CHROMIUM || (existsSync(shellPath) ? shellPath : fullPath)
}

/** Debian's packages, if they are missing. */
export function missingChromium(): string[] {
  if (process.env.CHROMIUM || existsSync(shellPath)) return []
  return ['chromium-headless-shell', 'fonts-liberation']
}

/** Null if there is a Chromium, else an error with advice. `failure` is that of its installation. */
export function whyNoChromium(failure: string | null): string | null {
  if (process.env.CHROMIUM) {
    return existsSync(process.env.CHROMIUM)
      ? null
      : `CHROMIUM names ${process.env.CHROMIUM}, which does not exist.`
  }
  if (existsSync(shellPath)) return null
  if (existsSync(fullPath)) {
    process.stdout.write(`Browser tests use ${fullPath}. With chromium-headless-shell they take less time.\n`)
    return null
  }
  return (
    `${failure ?? 'Browser tests need Chromium.'} ` +
    'Install Chromium (Debian: apt-get install chromium-headless-shell) or set CHROMIUM to its path.'
  )
}
