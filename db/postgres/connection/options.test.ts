/** URLs of PostgreSQL with the parameters of libpq. */
import { expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { serverOptions } from './options.ts'

const base = { node: 'n1', statementTimeoutMs: 10_000 }
const optionsFor = (url: string, environment = {}) => serverOptions({ ...base, url, environment })

test('parts of the URL win over its parameters and the environment', () => {
  expect(optionsFor('postgresql://us%40er:p%2Fw@db.example:6543/logs?sslmode=require')).toMatchObject({
    servers: [{ host: 'db.example', port: 6543 }],
    database: 'logs',
    username: 'us@er',
    password: 'p/w',
    ssl: 'require',
    schema: 'sightglass',
    prepare: true,
    settings: '',
    deadlineMs: 10_000,
  })
  const environment = { PGHOST: 'other', PGPORT: '1', PGUSER: 'me', PGPASSWORD: 'w', PGSSLMODE: 'disable' }
  expect(optionsFor('postgres:///logs', environment)).toMatchObject({
    servers: [{ host: 'other', port: 1 }],
    database: 'logs',
    username: 'me',
    password: 'w',
    ssl: false,
  })
  expect(optionsFor('postgres:///logs?host=/run/postgresql&user=a', environment)).toMatchObject({
    servers: [{ host: '/run/postgresql', port: 1 }],
    username: 'a',
  })
})

test('several servers are written as for libpq, and a list of ports belongs to a list of hosts', () => {
  const serversOf = (url: string, environment = {}) =>
    optionsFor(url, environment).servers.map(({ host, port }) => `${host} ${port}`)
  expect(serversOf('postgres://u:p@a:1,b,[::1]:3/d')).toEqual(['a 1', 'b 5432', '::1 3'])
  expect(serversOf('postgres:///d?host=a,b&port=1,2')).toEqual(['a 1', 'b 2'])
  expect(serversOf('postgres:///d', { PGHOST: 'a,::1', PGPORT: '7' })).toEqual(['a 7', '::1 7'])
  expect(serversOf('postgres://%2Frun%2Fpostgresql/d')).toEqual(['/run/postgresql 5432'])
  // Nobody has a socket at port 1.
  for (const url of [
    'postgres:///d?port=1',
    'postgres://:1/d',
    'postgres://u:p@/d?port=1',
    'postgres://?port=1',
  ])
    expect([url, serversOf(url)]).toEqual([url, ['localhost 1']])
})

test('a & at the end ends the parameters, as in libpq; ssl has the one value that libpq takes', () => {
  expect(optionsFor('postgres://h/d?sslmode=disable&').ssl).toBe(false)
  expect(optionsFor('postgres://h/d?ssl=true').ssl).toBe('require')
  expect(optionsFor('postgres://h/d?ssl=true&sslmode=disable').ssl).toBe(false)
  for (const value of ['1', 'false', 'no-verify', 'require'])
    expect(() => optionsFor(`postgres://h/d?ssl=${value}`)).toThrow(
      `ssl=${value} is not supported: write sslmode=require or sslmode=disable`,
    )
  expect(() => optionsFor('postgres://h/d?sslmode=disable&&application_name=x')).toThrow('has no value')
})

test('a node wants a primary, and a command only where its URL does', () => {
  const isPrimaryOnly = (url: string, primaryOnly = false) =>
    serverOptions({ ...base, url, primaryOnly }).primaryOnly
  expect([isPrimaryOnly('postgres://h/d'), isPrimaryOnly('postgres://h/d', true)]).toEqual([false, true])
  expect(isPrimaryOnly('postgres://a,b/d?target_session_attrs=read-write')).toBe(true)
})

test('a session names its node, its schema and its time limits', () => {
  expect(optionsFor('postgres://h/d').connection).toMatchObject({
    application_name: 'sightglass/n1',
    search_path: 'sightglass',
    statement_timeout: 10_000,
    idle_in_transaction_session_timeout: 5_000,
    lock_timeout: 10_000,
  })
  expect(optionsFor('postgres://h/d?search_path=logs,public').connection['search_path']).toBe('logs,public')
})

test('through a pooler each transaction sets them, and the session nothing', () => {
  const { connection, settings, prepare } = optionsFor('postgres://h/d?prepare=false')
  expect([connection, prepare]).toEqual([{ application_name: 'sightglass/n1' }, false])
  expect(settings).toStartWith('; SET LOCAL search_path = sightglass; SET LOCAL statement_timeout = 10000; ')
})

test('only the verifying modes check a certificate', () => {
  const modes = ['allow', 'prefer', 'require', 'verify-ca', 'verify-full']
  expect(modes.map((mode) => optionsFor(`postgres://h/d?sslmode=${mode}`).ssl)).toEqual([
    'allow',
    'prefer',
    'require',
    { rejectUnauthorized: true, checksHost: false },
    { rejectUnauthorized: true, checksHost: true },
  ])
  const sslFor = (mode: string) =>
    optionsFor(`postgres://h/d?sslmode=${mode}&sslrootcert=${import.meta.path}`).ssl
  expect(sslFor('verify-ca')).toMatchObject({ rejectUnauthorized: true, checksHost: false })
  expect(sslFor('verify-full')).toMatchObject({ checksHost: true })
  expect(sslFor('verify-full')).toMatchObject({
    rejectUnauthorized: true,
    ca: expect.stringContaining('libpq'),
  })
  // As in libpq: with a root certificate it is checked, but not the host.
  expect(sslFor('require')).toMatchObject({ rejectUnauthorized: true, checksHost: false })
  expect(sslFor('prefer')).toMatchObject({ rejectUnauthorized: false })
  expect(() => optionsFor('postgres://h/d?sslmode=verify-full&sslrootcert=/nowhere')).toThrow(
    'sslrootcert cannot be read (ENOENT)',
  )
})

test('a password of the file of libpq, by server, database and user', () => {
  using dir = tempDir('passfile')
  const passfile = dir.join('pass')
  const lines = [
    '# h:5432:d:u:no',
    'h:5432:d:u\\:1:p\\\\a\\:b',
    'h:*:other:*:second',
    '*:6000:*:me:third',
    'h:*:*:win:pass\r',
  ]
  writeFileSync(passfile, `${lines.join('\n')}\n`, { mode: 0o600 })
  const environment = { PGPASSFILE: passfile }
  const passwordOf = (url: string) => optionsFor(url, environment).password
  expect(passwordOf('postgres://u%3A1@h/d')).toBe('p\\a:b')
  expect(passwordOf('postgres://u@h/other')).toBe('second')
  expect(passwordOf('postgres://win@h/d')).toBe('pass')
  expect(passwordOf('postgres://me@x:6000/any')).toBe('third')
  expect(passwordOf('postgres://me@x:6001/any')).toBeUndefined()
  expect(passwordOf('postgres://me:own@x:6000/any')).toBe('own')
  expect(optionsFor('postgres://me@x:6000/any', { ...environment, PGPASSWORD: 'env' }).password).toBe('env')
  chmodSync(passfile, 0o640)
  expect(() => passwordOf('postgres://u@h/other')).toThrow('must not be accessible to others')
})

test('a URL that cannot be used says why, without repeating its password', () => {
  const message = (url: string): string => {
    try {
      optionsFor(url)
      return 'accepted'
    } catch (error) {
      return error instanceof Error ? error.message : ''
    }
  }
  const cases = {
    'mysql://u:secret@h/d': 'it must begin with postgres://',
    'postgres://u:secret@h:port/d': 'a host is NAME, NAME:PORT or [IPV6]:PORT',
    'postgres://u:secret@h/d?sslmode=yes':
      'sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full',
    'postgres://u:secret@h/d?target_session_attrs=standby':
      'target_session_attrs must be one of any, read-write, primary',
    'postgres://u:secret@more@h/d': 'its password contains "@"; write that as %40',
    'postgres://u:secret/more@h/d': 'its password contains "/"; write that as %2F',
    'postgres://u:secret%more@h/d':
      'the password contains a "%" that begins no encoded character; write it as %25',
    'postgres://u:secret@h:99999/d': 'a port is a number from 1 to 65535',
    'postgres://u:secret@a,b,c/d?port=1,2': 'it has 2 ports and 3 hosts',
    'postgres://u:secret@h/d?connect_timeout=soon': 'connect_timeout must be a whole number',
    'postgres://u:secret@h/d?sslmode': '"sslmode" has no value',
    'postgres://u:secret@h/d?channel_binding=require':
      'channel_binding=require is not supported: the driver cannot bind a password to its TLS connection; leave it out, and set sslmode=verify-full to check the server',
    'postgres://u:secret@h/d?pgbouncer=true':
      'pgbouncer=true is not supported: write prepare=false for a pooler',
    'postgres://u:secret@h/d?pool=3': '"pool" is not a parameter of a PostgreSQL URL',
    "postgres://u:secret@h/d?search_path='a'":
      'search_path must be a list of names in lower case, separated by commas',
  }
  for (const [url, expected] of Object.entries(cases))
    expect(message(url)).toBe(`the database URL cannot be used: ${expected}`)
})
