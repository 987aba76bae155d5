/** Tests that need a program of the system: skipped where it is not installed, with the name of its package. */
import { test } from 'bun:test'
import { existsSync } from 'node:fs'

/** The package of Debian that has the program. */
const packages = {
  apache2: 'apache2',
  bzip2: 'bzip2',
  caddy: 'caddy',
  'debsig-verify': 'debsig-verify',
  go: 'golang-go',
  gpg: 'gnupg',
  groff: 'groff',
  gzip: 'gzip',
  haproxy: 'haproxy',
  logger: 'bsdutils',
  nginx: 'nginx',
  php: 'php-cli',
  python3: 'python3',
  rpmkeys: 'rpm',
  rsyslogd: 'rsyslog',
  'systemd-analyze': 'systemd',
  zstd: 'zstd',
} as const

export type Program = keyof typeof packages

/** The path of an installed program, or null. Debian has servers in a folder that is not on everybody's PATH. */
function installed(program: Program): string | null {
  return Bun.which(program, { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/bin` })
}

/** `test`, or a skipped one whose name says what to install. */
export function testWith(
  program: Program,
  name: string,
  body: (path: string) => Promise<void> | void,
  timeoutMs?: number,
): void {
  const path = installed(program)
  const missing = path === null ? ` (not installed: apt-get install ${packages[program]})` : ''
  test.if(path !== null)(`${name}${missing}`, () => body(path!), timeoutMs)
}

/** A test that mounts folders and changes accounts, in a namespace of its own. */
export function testAsRoot(program: string, name: string, body: () => Promise<void>): void {
  const missing = process.getuid?.() === 0 ? (existsSync(program) ? '' : `no ${program}`) : 'needs root'
  test.if(missing === '')(missing === '' ? name : `${name} (${missing})`, body)
}
