/** Debian's web servers, PHP and rpm, which some tests start: finds them, and installs them with apt-get if it may. */
import { existsSync } from 'node:fs'
import { command } from './command.ts'

/** By package. */
export const programs = {
  nginx: '/usr/sbin/nginx',
  apache2: '/usr/sbin/apache2',
  caddy: '/usr/bin/caddy',
  'php-cli': '/usr/bin/php',
  rpm: '/usr/bin/rpm',
}

type Package = keyof typeof programs

function isInstalled(name: Package): boolean {
  return existsSync(programs[name])
}

const missing = (): string[] => (Object.keys(programs) as Package[]).filter((name) => !isInstalled(name))

/** Installs what is missing and says what is still missing after that. Tests of those programs are skipped. */
export async function ensurePrograms(): Promise<void> {
  const names = missing()
  if (names.length === 0) return
  if (process.getuid?.() === 0 && Bun.which('apt-get') !== null) {
    process.stdout.write(`installing ${names.join(', ')} with apt-get …\n`)
    // Without this run level the packages start their servers.
    const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
    const options = ['-o', 'Acquire::Retries=0', '-o', 'Acquire::http::Timeout=20']
    for (const step of [['update'], ['install', '--yes', '--no-install-recommends', ...names]]) {
      const result = await command(['apt-get', ...options, ...step], { timeoutMs: 5 * 60_000, env })
      if (result.code !== 0) break
    }
  }
  const still = missing().join(' ')
  if (still !== '') process.stdout.write(`Tests of ${still} are skipped. Debian: apt-get install ${still}\n`)
}
