/** Installing as a service, beside a stand-in for systemctl; completions for shells, the manual, the licences. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { commands } from '../../server/cli/run.ts'
import { binaryPath, cleanEnv, cli, type Exit } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { testAsRoot, testWith } from '../support/installed.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(40_000)

let dir: TempDir
const unitDir = () => dir.join('units')
const readMessages = () =>
  existsSync(dir.join('told')) ? readFileSync(dir.join('told'), 'utf8').trim().split('\n') : []

beforeAll(() => {
  dir = tempDir('service')
  mkdirSync(dir.join('bin'))
  writeFileSync(
    dir.join('bin/systemctl'),
    `#!/bin/sh
echo "$@" >> '${dir.join('told')}'
case "$1" in
  is-active) echo active ;;
  is-enabled) echo enabled ;;
  restart) [ -e '${dir.join('broken')}' ] && { echo 'Job failed.' >&2; exit 1; } ;;
esac
exit 0
`,
  )
  chmodSync(dir.join('bin/systemctl'), 0o755)
})
afterAll(() => dir.remove())

const service = (...args: string[]): Promise<Exit> =>
  cli(['service', ...args, '--unit-dir', unitDir()], {
    env: { PATH: `${dir.join('bin')}:${process.env['PATH']}` },
  })
const install = (...args: string[]) => service('install', '--executable', dir.join('opt/sightglass'), ...args)

test('a dry run prints a unit and changes nothing', async () => {
  const { code, stdout } = await install(
    '--dry-run',
    '--listen',
    '0.0.0.0:7400',
    '--backup-dir',
    '/mnt/my "50%" backups',
  )
  expect(code).toBe(0)
  expect([existsSync(unitDir()), readMessages()]).toEqual([false, []])
  expect(stdout).toContain('"--backup-dir=/mnt/my \\"50%%\\" backups"')
  expect(stdout).toContain('--data-dir=/var/lib/sightglass --listen=0.0.0.0:7400')
  for (const line of [
    'DynamicUser=yes',
    'ProtectSystem=strict',
    'NoNewPrivileges=yes',
    'CapabilityBoundingSet=\n',
    'PrivateUsers=yes',
  ])
    expect(stdout).toContain(line)
})

testWith('systemd-analyze', 'systemd accepts the unit', async (path) => {
  const { stdout } = await install(
    '--dry-run',
    '--listen',
    '0.0.0.0:7400',
    '--backup-dir',
    '/mnt/my "50%" backups',
  )
  const unit = dir.join('sightglass.service')
  writeFileSync(unit, stdout.replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true'))
  const child = Bun.spawn([path, 'verify', unit], { stdout: 'pipe', stderr: 'pipe' })
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ''])
})

test('a socket is in a folder that systemd creates or that the unit may write to', async () => {
  const ownExit = await install('--dry-run', '--listen', 'unix:/run/sightglass/http.sock')
  expect(ownExit.stdout).toContain('RuntimeDirectory=sightglass\n')
  expect(ownExit.stdout).not.toContain('ReadWritePaths')
  const foreignExit = await install('--dry-run', '--listen', 'unix:/srv/web/sightglass.sock')
  expect(foreignExit.stdout).toContain('ReadWritePaths=/srv/web\n')
  expect(foreignExit.stdout).not.toContain('RuntimeDirectory')
})

test('a relative path becomes absolute in the unit, because the service starts in another folder', async () => {
  const flags = ['--tls-cert', 'tls/cert.pem', '--tls-key', 'tls/key.pem', '--listen', 'unix:http.sock']
  const { code, stdout } = await cli(['service', 'install', '--dry-run', ...flags], { cwd: dir.join('bin') })
  expect(code).toBe(0)
  const line = /^ExecStart=.*$/m.exec(stdout)![0]
  expect(line).toContain(`--tls-cert=${dir.join('bin/tls/cert.pem')}`)
  expect(line).toContain(`--listen=unix:${dir.join('bin/http.sock')}`)
})

test('a low port gets the one capability it needs and no more', async () => {
  const { stdout } = await install('--dry-run', '--listen', '0.0.0.0:443')
  expect(stdout).toContain(
    'AmbientCapabilities=CAP_NET_BIND_SERVICE\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\n',
  )
  expect(stdout).not.toContain('PrivateUsers')
})

test('the service is installed, shown, installed again and removed, with this executable', async () => {
  expect((await service('status')).code).toBe(1)
  const installed = await install('--json')
  expect([installed.code, installed.stderr]).toEqual([0, ''])
  expect(JSON.parse(installed.stdout)).toMatchObject({ installed: true, enabled: true, active: 'active' })
  expect(readMessages().slice(-5)).toEqual([
    'daemon-reload',
    'enable sightglass.service',
    'restart sightglass.service',
    'is-enabled sightglass.service',
    'is-active sightglass.service',
  ])
  const placed = dir.join('opt/sightglass')
  expect(statSync(placed).mode & 0o777).toBe(0o755)
  expect(statSync(placed).size).toBe(statSync(binaryPath).size)
  const status = await service('status', '--json')
  expect([status.code, JSON.parse(status.stdout)]).toMatchObject([0, { installed: true, active: 'active' }])
  expect((await install('--listen', '127.0.0.1:7500')).code).toBe(0)
  expect(readFileSync(`${unitDir()}/sightglass.service`, 'utf8')).toContain('--listen=127.0.0.1:7500')
  expect((await service('uninstall')).stdout).toContain('The data stays')
  expect(readMessages().slice(-2)).toEqual(['disable --now sightglass.service', 'daemon-reload'])
  expect(existsSync(`${unitDir()}/sightglass.service`)).toBe(false)
  expect((await service('uninstall')).stdout).toContain('is not installed')
})

test('a service that does not start is reported in one line', async () => {
  writeFileSync(dir.join('broken'), '')
  const { code, stderr } = await install()
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^sightglass: systemctl restart .* failed: Job failed\. .*\n$/),
  ])
})

test('without systemd the message names the alternative', async () => {
  const { code, stderr } = await cli(['service', 'install', '--unit-dir', unitDir()], {
    env: { PATH: dir.join('nowhere') },
  })
  expect([code, stderr]).toEqual([1, expect.stringMatching(/no systemctl\..*--dry-run/)])
})

test('bash completes verbs, their second words and their flags', async () => {
  const { stdout: script } = await cli(['completions', 'bash'])
  const complete = async (...words: string[]): Promise<string[]> => {
    const typed = words.map((word) => `'${word}'`).join(' ')
    const line = `COMP_WORDS=(sightglass ${typed}); COMP_CWORD=${words.length}; _sightglass`
    const child = Bun.spawn(['bash', '-c', `${script}\n${line}; printf '%s\\n' "\${COMPREPLY[@]}"`], {
      cwd: dir.join('bin'),
    })
    return (await new Response(child.stdout).text()).trim().split('\n').sort()
  }
  expect(await complete('back')).toEqual(['backup'])
  expect(await complete('backup', '')).toEqual(['create', 'list', 'verify'])
  expect(await complete('restore', '--un')).toEqual(['--undo'])
  expect(await complete('key', 'create', '--ki')).toEqual(['--kind'])
  expect(await complete('--li')).toEqual(['--listen', '--listen-syslog'])
  expect(await complete('key', 'create', '--kind', '')).toEqual(['ingest', 'publishable', 'secret'])
  expect(await complete('key', 'create', '--kind', 'in')).toEqual(['ingest'])
  expect(await complete('account', 'create', '--role', 'a')).toEqual(['admin', 'analyst'])
  expect(await complete('key', 'create', '--scope', 'w')).toEqual(['webhooks:read', 'webhooks:write'])
  expect(await complete('key', 'create', '--scope', 'audit:read,met')).toEqual(['audit:read,metrics:read'])
  expect(await complete('key', 'create', '--scope=tr')).toEqual(['--scope=traces:read'])
  // As bash itself cuts words, at = and at :
  expect(await complete('key', 'create', '--kind', '=', 'se')).toEqual(['secret'])
  expect(await complete('key', 'create', '--kind', '=')).toEqual(['ingest', 'publishable', 'secret'])
  expect(await complete('key', 'create', '--scope', 'webhooks', ':', 'w')).toEqual(['write'])
  expect(await complete('key', 'create', '--scope', 'webhooks', ':')).toEqual(['read', 'write'])
  expect(await complete('key', 'create', '--kind', 'ingest', '--la')).toEqual(['--label'])
  expect(await complete('key', 'list', '--kind', 'ingest', '--j')).toEqual(['--json'])
})

testAsRoot(
  '/usr/bin/setpriv',
  'commands of root leave the account of the service its files, and no file from elsewhere',
  async () => {
    const account = 7400
    chmodSync(dir.path, 0o755)
    const dataDir = dir.join('data')
    const elsewhere = dir.join('elsewhere')
    mkdirSync(dataDir, { mode: 0o700 })
    chownSync(dataDir, account, account)
    copyFileSync(binaryPath, dir.join('sightglass'))
    writeFileSync(dir.join('events'), `${JSON.stringify(event('one'))}\n`)
    mkdirSync(elsewhere)
    for (const name of ['linked', 'pointed']) writeFileSync(join(elsewhere, name), 'of root')
    linkSync(join(elsewhere, 'linked'), join(dataDir, 'linked'))
    symlinkSync(elsewhere, join(dataDir, 'pointing'))
    const byAccount = async (...args: string[]): Promise<string> => {
      const drop = ['setpriv', `--reuid=${account}`, `--regid=${account}`, '--clear-groups']
      const command = [...drop, dir.join('sightglass'), ...args, '--data-dir', dataDir]
      const child = Bun.spawn(command, { cwd: '/', env: cleanEnv(), stdout: 'pipe', stderr: 'pipe' })
      const code = await child.exited
      const stderr = await new Response(child.stderr).text()
      expect([args[0], code, stderr]).toEqual([args[0], 0, ''])
      return new Response(child.stdout).text()
    }
    const byRoot = async (...args: string[]): Promise<string> => {
      // Not as an option of `cli`, which would take a database in its place.
      const { code, stdout, stderr } = await cli([...args, '--data-dir', dataDir])
      expect([args[0], code, stderr]).toEqual([args[0], 0, ''])
      const entries = readdirSync(dataDir, { recursive: true, withFileTypes: true })
      const owners = entries
        .filter((entry) => !entry.isSymbolicLink() && entry.name !== 'linked')
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => !path.includes('/pointing/') && statSync(path).uid !== account)
      expect([args[0], owners]).toEqual([args[0], []])
      return stdout
    }
    await byAccount('import', dir.join('events'))
    const { path } = JSON.parse(await byRoot('backup', 'create', '--json')) as { path: string }
    await byRoot('restore', path, '--yes')
    expect(await byAccount('export', 'traces')).toContain('"id":"one"')
    await byAccount('verify')
    await byRoot('restore', '--undo')
    expect(await byAccount('export', 'traces')).toContain('"id":"one"')
    const names = ['linked', 'pointed', '.'].map((name) => statSync(join(elsewhere, name)).uid)
    expect(names).toEqual([0, 0, 0])
  },
)

test('zsh and fish get every verb; the manual has every verb', async () => {
  const fish = (await cli(['completions', 'fish'])).stdout
  const zsh = (await cli(['completions', 'zsh'])).stdout
  const manual = (await cli(['man'])).stdout
  expect(fish).toMatch(/ -l kind -x -a 'ingest secret publishable'/)
  expect(fish).toMatch(/ -l role -x -a 'owner admin analyst viewer'/)
  expect(fish).toMatch(/ -l scope -x -a 'traces:read /)
  expect(zsh).toContain('ingest secret publishable')
  for (const { name: verb } of commands) {
    const last = verb.split(' ').at(-1)!
    expect(fish).toContain(` -a ${last} `)
    expect(zsh).toContain(last)
    expect(manual).toContain(`.B ${verb.replaceAll('-', '\\-')}`)
  }
  expect((await cli(['completions', 'tcsh'])).code).toBe(2)
})

testWith('groff', 'the manual reads without a warning', async (path) => {
  const manual = (await cli(['man'])).stdout
  const child = Bun.spawn([path, '-man', '-Tutf8', '-ww'], {
    stdin: new Blob([manual]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ''])
})

test('the executable lists its third-party licenses', async () => {
  const { components } = JSON.parse((await cli(['licenses', '--json'])).stdout) as {
    components: { name: string; license: string }[]
  }
  for (const name of ['bun', 'elysia', 'drizzle-orm', 'preact', 'croner'])
    expect(components.map((component) => component.name)).toContain(name)
  expect(components.filter(({ license }) => license === 'unknown')).toEqual([])
  const { stdout } = await cli(['licenses'])
  expect(stdout.match(/Permission is hereby granted/g)!.length).toBeGreaterThan(5)
})
