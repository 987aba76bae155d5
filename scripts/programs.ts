/** Debian's packages that tests use: installs with apt-get what is missing, if it may. */
import { existsSync } from 'node:fs'
import { command } from './command.ts'

/** Debian's web servers, PHP and rpm, which some tests start. By package. */
export const programs = {
  nginx: '/usr/sbin/nginx',
  apache2: '/usr/sbin/apache2',
  caddy: '/usr/bin/caddy',
  'php-cli': '/usr/bin/php',
  rpm: '/usr/bin/rpm',
}

/** The packages of `programs` that are not installed. */
export function missingPrograms(): string[] {
  return Object.entries(programs).flatMap(([name, path]) => (existsSync(path) ? [] : [name]))
}

/**
 * Installs Debian's packages without those they recommend. Returns what failed, or null, also when there is nothing to
 * install or this account may not install.
 */
async function installPackages(packages: string[]): Promise<string | null> {
  if (packages.length === 0 || process.getuid?.() !== 0 || Bun.which('apt-get') === null) return null
  process.stdout.write(`installing ${packages.join(', ')} with apt-get …\n`)
  // Without this run level the packages start their servers.
  const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  // Without a network the tests soon run with what is there.
  const options = '-o Acquire::Retries=0 -o Acquire::http::Timeout=20'
  const steps = [`apt-get ${options} update`]
  // The package of every PostgreSQL creates a cluster and starts it, unless this file says otherwise.
  if (packages.some((name) => name.startsWith('postgresql')))
    steps.push(
      'mkdir -p /etc/postgresql-common && ' +
        'echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf',
    )
  steps.push(`apt-get ${options} install --yes --no-install-recommends ${packages.join(' ')}`)
  for (const step of steps) {
    const result = await command(['sh', '-c', step], { timeoutMs: 5 * 60_000, env })
    if (result.code !== 0) return `${step} failed:\n${result.output.trimEnd()}\n`
  }
  return null
}

/**
 * Installs all packages at once, in two thirds of the time; after a failure each group alone, so that a package
 * that does not exist fails its own group only. Returns the failure of each group, or null.
 */
export async function installGroups<Name extends string>(
  groups: Record<Name, string[]>,
): Promise<Record<Name, string | null>> {
  const names = Object.keys(groups) as Name[]
  const neededGroups = names.filter((name) => groups[name].length > 0)
  const failure = await installPackages(neededGroups.flatMap((name) => groups[name]))
  const failures = Object.fromEntries(names.map((name) => [name, null])) as Record<Name, string | null>
  const isAlone = failure === null || neededGroups.length === 1
  for (const name of neededGroups) failures[name] = isAlone ? failure : await installPackages(groups[name])
  return failures
}
