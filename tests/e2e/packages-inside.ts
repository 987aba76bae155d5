/**
 * Installs, upgrades and removes the service with a package manager, in a root folder of its own and a network of its
 * own. Run by `packages.test.ts` and `packages.ts` with the kind, the root, and the packages of two releases in it.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { event } from '../support/events.ts'
import { until } from '../support/until.ts'

const [kind = '', root = '', older = '', newer = ''] = process.argv.slice(2)
const pathInRoot = (path: string): string => join(root, path)
const address = 'http://127.0.0.1:7400'
const config = ['--config', '/etc/sightglass/sightglass.toml']

interface Ran {
  code: number
  stdout: string
  stderr: string
}

/** Runs a command in the root folder. */
async function inside(...args: string[]): Promise<Ran> {
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  const child = Bun.spawn(['chroot', root, ...args], { env, stdout: 'pipe', stderr: 'pipe', stdin: 'ignore' })
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code, stdout, stderr }
}

async function succeed(...args: string[]): Promise<Ran> {
  const ran = await inside(...args)
  if (ran.code !== 0) throw new Error(`${args.join(' ')}: ${ran.code}\n${ran.stdout}${ran.stderr}`)
  return ran
}

/** In place of systemd: starts what the unit says, as the account and with the folder that the unit says. */
const systemctl = `#!/bin/sh
echo "$@" >> /tmp/systemctl.log
unit=/usr/lib/systemd/system/sightglass.service
start() {
  install -d -o sightglass -g sightglass -m 0700 /var/lib/sightglass
  set -- $(sed -n 's/^ExecStart=//p' $unit)
  setpriv --reuid=sightglass --regid=sightglass --clear-groups --no-new-privs env -i "$@" \
    >> /tmp/server.log 2>&1 < /dev/null & echo $! > /tmp/server.pid
}
stop() {
  [ -e /tmp/server.pid ] || return 0
  kill "$(cat /tmp/server.pid)" 2>/dev/null
  while kill -0 "$(cat /tmp/server.pid)" 2>/dev/null; do sleep 0.05; done
  rm /tmp/server.pid
}
for word; do
  case $word in
    start|enable) start ;;
    stop|disable) stop ;;
    restart|try-restart) stop; start ;;
    is-enabled) echo enabled ;;
  esac
done
`

function prepare(): void {
  mkdirSync(pathInRoot('run/systemd/system'), { recursive: true })
  rmSync(pathInRoot('usr/sbin/policy-rc.d'), { force: true }) // a container forbids starting services with it
  rmSync(pathInRoot('usr/bin/systemctl'), { force: true })
  writeFileSync(pathInRoot('usr/bin/systemctl'), systemctl)
  chmodSync(pathInRoot('usr/bin/systemctl'), 0o755)
}

/** Without the index of all manuals of the machine, and without syncing files of a folder that is removed. */
const quick = ['--no-triggers', '--force-unsafe-io']

const packages = {
  deb: {
    install: (file: string) => succeed('dpkg', ...quick, '--install', file),
    upgrade: (file: string) => succeed('dpkg', ...quick, '--install', file),
    remove: () => succeed('dpkg', '--remove', 'sightglass'),
  },
  // Not on a system of Debian's packages: nothing in its database provides the C library and the shell.
  rpm: {
    install: (file: string) => rpm('--install', '--nodeps', file),
    upgrade: (file: string) => rpm('--upgrade', '--nodeps', file),
    remove: () => rpm('--erase', 'sightglass'),
  },
}

const rpm = (...args: string[]): Promise<Ran> => succeed('rpm', '--force-debian', ...args)

const ready = () =>
  until(() =>
    fetch(`${address}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
const pid = (): string => readFileSync(pathInRoot('tmp/server.pid'), 'utf8').trim()

async function count(key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' }
  const text = await (await fetch(`${address}/v1/traces`, { headers })).text()
  return (JSON.parse(text.trim().split('\n').at(-1) ?? '') as { _end: { count: number } })._end.count
}

async function makeKey(kindOfKey: string): Promise<string> {
  const args = ['key', 'create', '--kind', kindOfKey, '--label', 'x', '--json', ...config]
  return (JSON.parse((await succeed('/usr/bin/sightglass', ...args)).stdout) as { key: string }).key
}

async function post(key: string, id: string): Promise<number> {
  const response = await fetch(`${address}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [event(id)] }),
  })
  return response.status
}

/** The real, effective, saved and file system account of the server. */
function accounts(): string[] {
  const line = /^Uid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid()}/status`, 'utf8'))?.[1] ?? ''
  return [...new Set(line.split(/\s+/))]
}

const version = async (): Promise<string> => (await succeed('/usr/bin/sightglass', 'version')).stdout.trim()

async function lifeOfPackage(manager: (typeof packages)['deb']): Promise<object> {
  prepare()
  const installed = await manager.install(older)
  if (kind === 'rpm') await succeed('systemctl', 'enable', '--now', 'sightglass.service')
  await ready()
  const firstPid = pid()
  const state = statSync(pathInRoot('var/lib/sightglass'))
  const stateBefore = {
    hint: `${installed.stdout}${installed.stderr}`,
    verified: kind === 'rpm' ? (await succeed('rpm', '--checksig', '--verbose', older)).stdout : '',
    version: await version(),
    ownAccount: accounts().length === 1 && accounts()[0] === String(state.uid) && state.uid !== 0,
    secretMode: (statSync(pathInRoot('etc/sightglass/environment')).mode & 0o777).toString(8),
    asked: readFileSync(pathInRoot('tmp/systemctl.log'), 'utf8').trim().split('\n'),
    files: ['man/man1/sightglass.1.gz', 'bash-completion/completions/sightglass'].map((name) =>
      existsSync(pathInRoot(`usr/share/${name}`)),
    ),
  }
  const ingest = await makeKey('ingest')
  const secret = await makeKey('secret')
  const posted = await post(ingest, 'before')
  const changed = `${readFileSync(pathInRoot('etc/sightglass/sightglass.toml'), 'utf8')}retention-days = "30"\n`
  writeFileSync(pathInRoot('etc/sightglass/sightglass.toml'), changed)

  await manager.upgrade(newer)
  await ready()
  const upgraded = {
    version: await version(),
    restarted: pid() !== firstPid,
    configKept: readFileSync(pathInRoot('etc/sightglass/sightglass.toml'), 'utf8') === changed,
    posted: await post(ingest, 'after'),
    events: await count(secret),
  }

  const removal = await manager.remove()
  const removed = {
    said: removal.stderr,
    stopped: !existsSync(pathInRoot('tmp/server.pid')),
    executable: existsSync(pathInRoot('usr/bin/sightglass')),
    data: existsSync(pathInRoot('var/lib/sightglass/sightglass.db')),
    account: (await inside('getent', 'passwd', 'sightglass')).code === 0,
  }
  return { before: stateBefore, posted, upgraded, removed, purged: kind === 'deb' ? await purge() : null }
}

async function purge(): Promise<object> {
  const { stderr } = await succeed('dpkg', '--purge', 'sightglass')
  return {
    said: stderr,
    config: existsSync(pathInRoot('etc/sightglass')),
    data: existsSync(pathInRoot('var/lib/sightglass/sightglass.db')),
  }
}

try {
  const answer = await lifeOfPackage(packages[kind as keyof typeof packages])
  process.stdout.write(`${JSON.stringify(answer)}\n`)
} catch (error) {
  const log = existsSync(pathInRoot('tmp/server.log'))
    ? readFileSync(pathInRoot('tmp/server.log'), 'utf8')
    : ''
  process.stderr.write(`${String(error)}\n${log.slice(-4_000)}\n`)
  process.exitCode = 1
} finally {
  if (existsSync(pathInRoot('tmp/server.pid'))) process.kill(Number(pid()), 'SIGKILL')
}
