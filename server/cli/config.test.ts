/** Configuration: which source wins, and a clear error for every invalid value. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { isolateEnvironment, type Environment } from '../system/environment.ts'
import { optionTable } from './arguments.ts'
import { commands } from './run.ts'
import { readConfigText as readTextWith, readInvocation as readWith, secretVariables } from './config.ts'
import { UsageError } from '../errors.ts'
import { databaseUrl, environmentTwin } from './option.ts'
import { serveConfig } from './serve-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'sightglass-config-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

let files = 0
function file(text: string): string {
  const path = join(folder, `${files++}.toml`)
  writeFileSync(path, text)
  return path
}

const table = optionTable(commands)
const optionNames = [...table.keys()]
// The values of the command that was parsed, as the test knows it.
function readInvocation(args: string[], environment: Environment) {
  const invocation = readWith(args, environment, commands)
  return { ...invocation, values: invocation.values as Record<string, unknown> }
}
const readConfigText = (text: string, path: string) => readTextWith(text, path, table)

function serving(args: string[], environment: Environment = {}) {
  return serveConfig(readInvocation(args, environment).values as Parameters<typeof serveConfig>[0])
}

function refusal(run: () => unknown): UsageError {
  try {
    run()
  } catch (error) {
    if (error instanceof UsageError) return error
    throw error
  }
  throw new Error('it was not refused')
}

describe('sources', () => {
  const path = file('listen = "1.1.1.1:3"\nlog-level = "warn"\nallowed-host = ["a.example", "b.example"]\n')

  test('flag beats environment beats file beats default', () => {
    const environment = { SIGHTGLASS_LISTEN: '1.1.1.1:2', SIGHTGLASS_CONFIG: path }
    expect(serving([]).listen).toEqual({ host: '127.0.0.1', port: 7400 })
    expect(serving(['--config', path]).listen.port).toBe(3)
    expect(serving([], environment).listen.port).toBe(2)
    expect(serving(['--listen', '1.1.1.1:1'], environment).listen.port).toBe(1)
    expect(serving([], environment)).toMatchObject({
      logLevel: 'warn',
      allowedHosts: ['a.example', 'b.example'],
    })
  })

  test('each value has its source', () => {
    const { settings } = readInvocation(['config', '--listen=[::1]:0'], {
      SIGHTGLASS_DISK_FLOOR: '0',
      SIGHTGLASS_CONFIG: path,
    })
    const from = Object.fromEntries(settings.map((setting) => [setting.name, [setting.source, setting.from]]))
    expect(from).toMatchObject({
      listen: ['flag', '--listen'],
      'disk-floor': ['environment', 'SIGHTGLASS_DISK_FLOOR'],
      'log-level': ['file', path],
      'data-dir': ['default', 'default'],
    })
  })

  test('flags may be anywhere; the last repetition wins, also for lists', () => {
    const key = readInvocation(
      ['--kind', 'secret', 'key', '--label=a', 'create', '--kind', 'ingest', '--label', 'b'],
      {},
    )
    expect(key.command.name).toBe('key create')
    expect(key.values).toMatchObject({ kind: 'ingest', label: 'b' })
    expect(
      serving(['--trusted-proxy', '10.0.0.1', '--trusted-proxy', '10.0.0.2,::1']).trustedProxies,
    ).toEqual(['10.0.0.2', '::1'])
    expect(
      readInvocation(['key', 'create', '--kind=ingest', '--label=x', '--site', 'a', '--site=b,c'], {}).values
        .site,
    ).toEqual(['a', 'b', 'c'])
    expect(readInvocation(['org', 'list', '--json', '--json=false'], {}).values.json).toBe(false)
    const trusted = '-AQb'.padEnd(43, 'x')
    const { values } = readInvocation(['verify', 'a.html', '--trusted-key', trusted], {})
    expect(values['trusted-key']).toBe(trusted)
  })

  test('reads base paths without a trailing slash and socket paths', () => {
    const paths = ['/', '/a/', '/a/b.c'].map((path) => serving(['--base-path', path]).basePath)
    expect(paths).toEqual(['', '/a', '/a/b.c'])
    const { listen } = serving(['--listen', 'unix:/run/sightglass/http.sock'])
    expect(listen).toEqual({ host: 'localhost', port: 0, unix: '/run/sightglass/http.sock' })
    const { url } = readInvocation(['demo', '--live', '--url', 'https://a.example/sightglass/'], {}).values
    expect(url).toBe('https://a.example/sightglass')
  })

  test('tables of the file: [[watch]], [[robots]] and [[listen-syslog]]', () => {
    const fields = { watch: 'path = "/a.log"', robots: 'path = "/r"', 'listen-syslog': 'address = "unix:/s"' }
    const tables = Object.entries(fields).map(
      ([name, extraLines]) => `[[${name}]]\nsite = "b"\norg = "a"\n${extraLines}`,
    )
    const { watches, robots, syslog } = serving(['--config', file(tables.join('\n'))])
    expect([...watches, ...robots]).toMatchObject(['/a.log', '/r'].map((path) => ({ org: 'a', path })))
    expect(syslog).toEqual([{ org: 'a', siteId: 'b', at: { unix: '/s' }, trustedProxies: [] }])
  })

  test('every option has a variable, and an empty variable counts as absent', () => {
    expect(environmentTwin('data-dir')).toBe('SIGHTGLASS_DATA_DIR')
    expect(serving([], { SIGHTGLASS_LISTEN: '' }).listen.port).toBe(7400)
    for (const name of optionNames.filter(
      (optionName) => !table.get(optionName)!.flagOnly && optionName !== 'config',
    )) {
      const verb = commandWith(name).name
      const environment = { [environmentTwin(name)]: sample(name), ...neededFor(verb) }
      const { settings } = readInvocation(verb.split(' '), environment)
      expect([name, settings.find((setting) => setting.name === name)?.source]).toEqual([name, 'environment'])
    }
  })

  test('commands that share an option name agree on whether it takes a value; each has its own reader', () => {
    for (const { name: verb, options } of commands)
      for (const [name, { value }] of Object.entries(options))
        expect([verb, name, value === null]).toEqual([verb, name, table.get(name)!.value === null])
    const access = readInvocation(
      ['import', 'access', 'a', '--site', 'x,y', '--site=a,b', '--format', '%x'],
      {},
    )
    expect(access.values).toMatchObject({ site: 'a,b', format: '%x' })
    expect(() => readInvocation(['export', 'traces', '--format', '%x'], {})).toThrow(
      'is not one of json, csv',
    )
  })

  test('a secret may come from a file, but not from two places', () => {
    const secret = join(folder, 'password')
    writeFileSync(secret, 'a long enough one\n')
    const environment = { SIGHTGLASS_ADMIN_EMAIL: 'a@b.c', SIGHTGLASS_ADMIN_PASSWORD_FILE: secret }
    expect(serving([], environment).admin).toEqual({ email: 'a@b.c', password: 'a long enough one' })
    expect(refusal(() => serving([], { ...environment, SIGHTGLASS_ADMIN_PASSWORD: 'x' })).message).toContain(
      'both',
    )
    expect(
      refusal(() => serving([], { SIGHTGLASS_ADMIN_PASSWORD_FILE: join(folder, 'none') })).message,
    ).toContain('none')
    expect(serving([], { SIGHTGLASS_LISTEN_FILE: secret }).listen.port).toBe(7400)
  })

  test('a line end behind a variable is no part of it, as in secrets made of files', () => {
    const environment = {
      SIGHTGLASS_OIDC_ISSUER: 'https://id.example.com\n',
      SIGHTGLASS_OIDC_CLIENT_ID: 'sightglass\r\n',
      SIGHTGLASS_OIDC_CLIENT_SECRET: 'a secret\n',
      SIGHTGLASS_PUBLIC_URL: 'https://logs.example.com\n',
      SIGHTGLASS_LISTEN: '\n',
    }
    const { oidc, listen } = serving([], environment)
    expect(oidc).toMatchObject({
      issuer: 'https://id.example.com',
      clientId: 'sightglass',
      clientSecret: 'a secret',
    })
    expect(listen.port).toBe(7400)
    const empty = { ...environment, SIGHTGLASS_OIDC_CLIENT_SECRET: '\n' }
    expect(refusal(() => serving([], empty)).message).toContain('the value is empty')
  })

  test('a secret may be a systemd credential, which a variable overrides', () => {
    writeFileSync(join(folder, 'sightglass.backup-passphrase'), 'from the credential\n')
    const environment = { CREDENTIALS_DIRECTORY: folder }
    expect(serving([], environment).backup.passphrase).toBe('from the credential')
    expect(serving([], { ...environment, SIGHTGLASS_BACKUP_PASSPHRASE: 'x' }).backup.passphrase).toBe('x')
    expect(serving([], { CREDENTIALS_DIRECTORY: join(folder, 'none') }).backup.passphrase).toBeNull()
  })

  test('a key ring comes from a file, the environment or a credential, and never shows in a message', () => {
    const key = 'ab'.repeat(32)
    const path = join(folder, 'keys')
    writeFileSync(path, `${key}\n`)
    const idsOf = (args: string[], environment: Environment = {}) =>
      serving(args, environment).keyRing?.encryption.map((keyBytes) => keyBytes.toString('hex')) ?? null
    expect(idsOf([])).toBeNull()
    expect(idsOf(['--key-file', path])).toEqual([key])
    expect(idsOf([], { SIGHTGLASS_KEY_FILE: path })).toEqual([key])
    expect(idsOf([], { SIGHTGLASS_KEY_RING: key })).toEqual([key])
    expect(idsOf([], { SIGHTGLASS_KEY_RING_FILE: path })).toEqual([key])
    writeFileSync(join(folder, 'sightglass.key-ring'), key)
    expect(idsOf([], { CREDENTIALS_DIRECTORY: folder })).toEqual([key])
    const bothRefusal = refusal(() => idsOf(['--key-file', path], { SIGHTGLASS_KEY_RING: key }))
    expect(bothRefusal.message).toContain('must not be set together')
    writeFileSync(path, `${key}0\n`)
    expect(refusal(() => idsOf(['--key-file', path])).message).toBe(
      `--key-file ${path}: it must contain keys of 32 bytes in hex, one per line`,
    )
    expect(refusal(() => idsOf(['--key-file', join(folder, 'none')])).message).toContain('ENOENT')
    const invalid = refusal(() => idsOf([], { SIGHTGLASS_KEY_RING: `${key}0` }))
    expect(invalid.message).toBe('SIGHTGLASS_KEY_RING: the value is invalid')
  })

  test('taking the environment removes proxies and secrets from the process', () => {
    const environment: Environment = {
      HTTP_PROXY: 'http://p',
      https_proxy: 'http://p',
      SIGHTGLASS_ADMIN_PASSWORD: 'secret',
      PATH: '/bin',
    }
    expect(isolateEnvironment(secretVariables(commands), environment)['SIGHTGLASS_ADMIN_PASSWORD']).toBe(
      'secret',
    )
    expect(Object.keys(environment)).toEqual(['PATH'])
  })

  test('an unknown variable with our prefix is a warning, except those an orchestrator injects', () => {
    const environment = { SIGHTGLASS_LISTN: 'x', SIGHTGLASS_PORT: 'tcp://1', SIGHTGLASS_SERVICE_HOST: '1' }
    expect(readInvocation([], environment).warnings).toEqual([
      'unknown environment variable SIGHTGLASS_LISTN has no effect',
    ])
  })
})

describe('errors are one clear line', () => {
  const wrongLines: [args: string, part: string][] = [
    ['--listen 7400', 'host:port'],
    ['--listen 127.0.0.1:70000', 'above 65535'],
    ['--listen ::1:7400', 'brackets'],
    ['--listen [1.2.3.4]:7400', 'IPv6'],
    ['--listen a/b:7400', 'host:port'],
    ['--listen', 'needs a value'],
    ['--listen=', '--listen'],
    ['--listen --json', 'needs a value'],
    ['--listen -h', 'needs a value'],
    ['--ingest-listen 127.0.0.1:7400', 'same address'],
    ['--public-url example.com', 'http'],
    ['--public-url ftp://example.com', 'http'],
    ['--public-url https://a:b@example.com', 'user name'],
    ['--public-url https://example.com/x', 'path'],
    ['--allowed-host https://example.com', 'host name'],
    ['--trusted-proxy 10.0.0.0/33', 'range'],
    ['--trusted-proxy proxy', 'range'],
    ['--trusted-proxy fd00::/129', 'range'],
    ['--disk-floor 5XB', 'size'],
    ['--disk-floor -5', 'size'],
    ['--disk-floor 99999999TiB', 'large'],
    ['--log-level loud', 'one of'],
    ['--watch [', 'SITE=PATH'],
    ['--listen-syslog [::1]', '--listen-syslog'],
    ['--config /no/such/file.toml', 'no such file'],
    ['--nope', 'unknown option'],
    ['--admin-password x', 'cannot be a flag'],
    ['serve extra', 'unexpected argument'],
    ['org list extra', 'unexpected argument'],
    ['org list --listen 1.1.1.1:1', 'not an option of'],
    ['serve --json', 'not an option of'],
    ['org create', 'needs --name'],
    ['key create --kind ingest', 'needs --label'],
    ['key create --kind both --label x', 'one of'],
    ['frobnicate', 'unknown command'],
    ['key', 'incomplete'],
    ['key frob', 'unknown command'],
    ['serve --base-path sightglass', 'not a path'],
    ['serve --base-path /a/../b', 'not a path'],
    ['serve --base-path /a?b', 'not a path'],
    ['serve --listen unix:', 'path of a socket'],
    [`serve --listen unix:/${'x'.repeat(107)}`, 'at most 107 bytes'],
    ['serve --listen unix:/run/a --ingest-listen unix:/run/a', 'same address'],
    ['demo --live --url https://a.example/b?c', 'after its path'],
    ['demo --rate 5', 'rate'],
    ['demo --rate 0/s', 'rate'],
    ['demo --events 5', 'whole number'],
    ['demo --seed 1.5', 'whole number'],
    ['org list --json=perhaps', 'true or false'],
  ]
  test.each(wrongLines)('%s', (args, part) => {
    const { message } = refusal(() => serving(args.split(' ')))
    expect(message).toContain(part)
    expect(message).not.toContain('\n')
  })

  test('configuration files: invalid TOML, unknown keys, tables, options that are not allowed', () => {
    const wrong: [text: string, part: string][] = [
      ['listen = ', 'TOML'],
      ['lisen = "a:1"', 'unknown option'],
      ['[listen]\nhost = "a"', 'must be'],
      ['allowed-host = ["a,b"]', 'must be'],
      ['allowed-host = [1]', 'must be'],
      ['admin-password = "x"', 'environment only'],
      ['config = "x"', 'not allowed'],
    ]
    for (const [text, part] of wrong)
      expect(refusal(() => readConfigText(text, 'x.toml')).message).toContain(part)
    expect(refusal(() => readConfigText('lisen = "a:1"', 'x.toml')).hint).toBe('did you mean listen?')
    expect(refusal(() => serving(['--config', file('disk-floor = "x"')])).message).toContain(
      '.toml: disk-floor: ',
    )
  })

  test('a misspelled name gets a suggestion', () => {
    expect(refusal(() => readInvocation(['verson'], {})).hint).toBe('did you mean "sightglass version"?')
    expect(refusal(() => readInvocation(['acount', 'list'], {})).hint).toBe(
      'did you mean "sightglass account list"?',
    )
    const flags: [string[], string][] = [
      [['--datadir', 'x'], '--data-dir'],
      [['--data-d', 'x'], '--data-dir'],
      [['-listen', 'x'], '--listen'],
      [['-lisetn=x'], '--listen'],
      [['verify', '--josn'], '--json'],
      [['key', 'create', '--knd', 'ingest'], '--kind'],
      [['key', 'create', 'stray', '--lable', 'x'], '--label'],
      [['export', 'audit', '--prof'], '--proof'],
      [['key', 'revoke', 'key_1', '--i'], '--id'],
    ]
    for (const [words, flag] of flags)
      expect([words, refusal(() => readInvocation(words, {})).hint]).toEqual([words, `did you mean ${flag}?`])
    expect(refusal(() => readInvocation(['org', 'list', '--nothing-like-it'], {})).hint).toBe(
      'sightglass help org list',
    )
    const kind = refusal(() => readInvocation(['key', 'create', '--kind', 'ingst'], {}))
    expect([kind.message, kind.hint]).toEqual([
      '--kind: "ingst" is not one of ingest, secret, publishable',
      'did you mean ingest?',
    ])
  })

  test('-v and -V print the version, -h helps', () => {
    for (const words of [['-v'], ['-V'], ['--version'], ['key', 'list', '-v']])
      expect(readInvocation(words, {}).command.name).toBe('version')
    expect(readInvocation(['key', 'list', '-h'], {})).toMatchObject({
      command: { name: 'key list' },
      help: true,
    })
    expect(readInvocation(['-h'], {})).toMatchObject({ command: { name: 'help' } })
  })

  test('an incomplete first owner is rejected, and no message contains a secret', () => {
    expect(refusal(() => serving([], { SIGHTGLASS_ADMIN_EMAIL: 'a@b.c' })).message).toContain('set together')
    expect(refusal(() => serving([], { SIGHTGLASS_ADMIN_PASSWORD: 'hunter22' })).message).not.toContain(
      'hunter22',
    )
  })

  test('no command line throws anything but a usage error', () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom(...'serve key create help -- -h --json - --= --listen --config= ['.split(' ')),
      fc.constantFrom(...optionNames).map((name) => `--${name}`),
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (args) => {
        try {
          readInvocation(args, {})
        } catch (error) {
          if (!(error instanceof UsageError)) throw error
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

/** A command with this option; serve when it has it. */
function commandWith(name: string) {
  return commands.find(({ options }) => name in options)!
}

function sample(name: string): string {
  const samples: { [option: string]: string } = {
    'base-path': '/sightglass',
    'ingest-listen': '127.0.0.1:0',
    'metrics-listen': '127.0.0.1:0',
    'metrics-token': 'sixteen-or-more-characters',
    'trusted-proxy': '10.0.0.0/8',
    'webhook-allow': '127.0.0.0/8',
    'webhook-proxy': 'http://a.example:3128',
    status: 'pending',
    'public-url': 'https://a.example',
    'memory-limit': '1GiB',
    'key-ring': '00'.repeat(32),
    database: 'postgres://a.example/sightglass',
    kind: 'ingest',
    partition: 'day',
    include: 'record',
    role: 'viewer',
    url: 'http://a.example',
    'oidc-issuer': 'https://a.example',
    hidden: 'yes',
    restricted: 'yes',
    watch: 'shop=/var/log/nginx/access.log',
    robots: 'shop=/var/www/robots.txt',
    'listen-syslog': 'shop=udp:127.0.0.1:5514',
    report: 'week=/srv/reports',
    'smtp-url': 'smtp://a.example',
    'smtp-from': 'a@b.example',
    to: 'http://a.example',
  }
  return samples[name] ?? (table.get(name)!.default || 'x')
}

function neededFor(verb: string): Environment {
  const { options } = commands.find((command) => command.name === verb)!
  const neededOptions = Object.entries(options).filter(([, option]) => option.needed)
  return Object.fromEntries(neededOptions.map(([name]) => [environmentTwin(name), sample(name)]))
}

test('a database URL may list several servers, or leave all to the variables of libpq', () => {
  const urls = [
    'postgres://',
    'postgres://u:p,w@a:1,b:2/db?x=1',
    'postgresql://a,b/db',
    'postgres://[::1]:1/db',
  ]
  for (const url of urls) expect(databaseUrl(url)).toBe(url)
  for (const url of ['mysql://a/b', 'a:1,b:2'])
    expect(() => databaseUrl(url)).toThrow('the URL of a database is')
})
