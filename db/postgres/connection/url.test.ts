/** URLs of a real PostgreSQL: what `psql` takes leads to the same database here, and defaults change no session. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { program, start, startPostgres, type Cluster } from '../../../tests/support/postgres.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { openConnection } from './connection.ts'

const passwords = {
  plain: 'p+w',
  signs: 'a@b/c#d?e:f%',
  accents: 'Cr\u00e8me br\u00fbl\u00e9e',
  softHyphen: 'I\u00adX and \u2168',
}

let cluster: Cluster
let port = ''
beforeAll(async () => {
  cluster = await startPostgres({ settings: { password_encryption: 'scram-sha-256' } })
  port = new URL(cluster.url).port
  for (const [name, password] of Object.entries(passwords)) {
    await writePassword(name.toLowerCase(), password)
    await cluster.sql(`CREATE DATABASE ${name.toLowerCase()} OWNER ${name.toLowerCase()}`)
  }
  await cluster.sql(`CREATE DATABASE "with space"`)
  // Roles of the test need their password on each way in.
  const file = join(cluster.socketFolder, 'data/pg_hba.conf')
  const trusted = readFileSync(file, 'utf8')
  writeFileSync(file, 'local all postgres trust\nlocal all all scram-sha-256\n')
  appendFileSync(file, 'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n')
  appendFileSync(file, trusted)
  await cluster.sql('SELECT pg_reload_conf()')
}, 120_000)
afterAll(() => cluster.stop())

/** As libpq's `\password` and every tool that sends the text: the server prepares it. */
async function writePassword(role: string, password: string): Promise<void> {
  await cluster.sql(`CREATE ROLE ${role} LOGIN PASSWORD '${password.replaceAll("'", "''")}'`)
}

const question = `SELECT current_user || ' ' || current_database()`

function ownSettings(url: string): string {
  const db = openConnection({ url, node: 'test', statementTimeoutMs: 5_000, schema: 'public' })
  try {
    return String(db.query(question).values()[0]?.[0])
  } finally {
    db.close()
  }
}

async function psql(url: string): Promise<string> {
  const child = start([program('psql'), '--no-psqlrc', '-At', '-c', question, url])
  await child.exited
  return child.stdout().trim()
}

const encoded = encodeURIComponent
test('twenty forms of a URL lead where psql goes', async () => {
  const socket = encoded(cluster.socketFolder)
  const address = `127.0.0.1:${port}`
  const attributes = 'keepalives=1&target_session_attrs=read-write'
  const keepalives = 'keepalives=1&keepalives_idle=30'
  const forms = [
    `postgres://plain:p+w@${address}/plain`,
    `postgresql://plain:p%2Bw@${address}/plain?sslmode=prefer`,
    `postgresql://${address}/plain?user=plain&password=p+w`,
    `postgresql://nobody:wrong@nowhere.invalid:1/no?host=127.0.0.1&port=${port}&user=plain&password=p+w&dbname=plain`,
    `postgresql:///plain?host=${socket}&port=${port}&user=plain&password=p+w`,
    `postgresql:///plain?host=${cluster.socketFolder}&port=${port}&user=plain&password=p+w`,
    `postgresql://plain:p+w@${socket}:${port}/plain`,
    `postgresql://plain:p+w@/plain?host=${socket}&port=${port}`,
    `postgresql://plain:p+w@127.0.0.1:1,${address}/plain`,
    `postgresql://plain:p+w@127.0.0.1,127.0.0.1/plain?port=1,${port}`,
    `postgresql://plain:p+w@nowhere.invalid:${port}/plain?hostaddr=127.0.0.1`,
    `postgresql://plain:p+w@${address}/plain?application_name=x&connect_timeout=10&${attributes}`,
    `postgresql://plain:p+w@${address}/plain?channel_binding=prefer&gssencmode=disable&sslcompression=0`,
    `postgresql://plain:p+w@${address}/plain?options=-c%20geqo%3Doff%20-c%20work_mem%3D8MB`,
    `postgresql://plain:p+w@${address}/plain?${keepalives}&keepalives_interval=5&keepalives_count=3`,
    `postgresql://plain:p+w@${address}/plain?client_encoding=UTF8&fallback_application_name=y&connect_timeout=0`,
    `postgresql://signs:${encoded(passwords.signs)}@${address}/signs`,
    `postgresql://signs:a%40b%2Fc#d?e:f%25@${address}/signs`,
    `postgresql://accents:${encoded(passwords.accents)}@${address}/accents`,
    `postgresql://accents:${encoded(passwords.accents.normalize('NFD'))}@${address}/accents`,
    `postgresql://softhyphen:${encoded(passwords.softHyphen)}@${address}/softhyphen`,
    `postgresql://softhyphen:IX%20and%20IX@${address}/softhyphen`,
    `postgresql://postgres@${address}/with%20space`,
    `postgresql://plain:p+w@${address}`,
  ]
  for (const url of forms) {
    const expected = await psql(url)
    expect([url, expected]).toEqual([url, expect.stringMatching(/^\w+ [\w ]+$/)])
    expect([url, ownSettings(url)]).toEqual([url, expected])
  }
}, 120_000)

test('a password file is read as psql reads it: escapes, comments, line ends of Windows', async () => {
  using dir = tempDir('password-files')
  const start = `127.0.0.1:${port}:signs:signs:`
  const files = [
    `${start}a@b/c#d?e\\:f%\n`,
    `# a comment\r\n${start}a@b/c#d?e\\:f%\r\n`,
    `${start}a@b/c#d?e\\:f%\r`,
    `\n*:*:*:someone:else\n*:*:*:signs:a@b/c#d?e\\:f\\%`,
  ]
  for (const [index, text] of files.entries()) {
    const passfile = dir.join(String(index))
    writeFileSync(passfile, text, { mode: 0o600 })
    const url = `postgresql://signs@127.0.0.1:${port}/signs?passfile=${encoded(passfile)}`
    expect([text, await psql(url)]).toEqual([text, expect.stringContaining('signs')])
    expect([text, ownSettings(url)]).toEqual([text, await psql(url)])
  }
}, 60_000)

test('a URL without a host leads to the socket of this machine, where a package or PostgreSQL puts it', () => {
  const usual = `/tmp/.s.PGSQL.${port}`
  symlinkSync(join(cluster.socketFolder, `.s.PGSQL.${port}`), usual)
  try {
    for (const host of ['', `:${port}`]) {
      const url = `postgresql://plain:p+w@${host}/plain?port=${port}`
      const db = openConnection({ url, node: 'test', statementTimeoutMs: 5_000, schema: 'public' })
      try {
        expect(db.query('SELECT inet_server_addr() IS NULL').values()).toEqual([[1]])
      } finally {
        db.close()
      }
    }
  } finally {
    rmSync(usual)
  }
})

/** Each as `ALTER ROLE … SET`, which applies to every session that does not say otherwise. */
const roleSettings = {
  array_nulls: 'off',
  backslash_quote: 'off',
  bytea_output: 'escape',
  client_encoding: 'LATIN1',
  client_min_messages: 'debug1',
  cursor_tuple_fraction: '1',
  datestyle: "'German, DMY'",
  default_transaction_deferrable: 'on',
  default_transaction_isolation: 'serializable',
  enable_bitmapscan: 'off',
  enable_hashagg: 'off',
  enable_hashjoin: 'off',
  enable_indexonlyscan: 'off',
  enable_indexscan: 'off',
  enable_mergejoin: 'off',
  enable_nestloop: 'off',
  enable_seqscan: 'off',
  enable_sort: 'off',
  escape_string_warning: 'off',
  extra_float_digits: '-15',
  gin_fuzzy_search_limit: '1',
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: '1',
  intervalstyle: 'iso_8601',
  jit: 'on',
  lock_timeout: '50',
  plan_cache_mode: 'force_generic_plan',
  quote_all_identifiers: 'on',
  row_security: 'on',
  search_path: 'pg_catalog',
  standard_conforming_strings: 'off',
  statement_timeout: '50',
  timezone: "'Pacific/Chatham'",
  transform_null_equals: 'on',
  xmlbinary: 'hex',
}

describe.each(['', '?prepare=false'])('a role whose defaults differ, with the URL %p', (parameters) => {
  /** What the statements of the product depend on: text of values, meaning of literals, visibility and time. */
  const readings = [
    `SELECT '\\xdeadbeef'::bytea`,
    `SELECT 0.1::float8 + 0.2::float8, 1e-7::float4`,
    `SELECT ('2026-02-03 04:05:06+00'::timestamptz)::text, '2026-02-03'::date::text`,
    `SELECT '1 day 02:03:04'::interval::text`,
    `SELECT 'a\\nb', length('a\\nb'), 'Cr\u00e8me'`,
    `SELECT coalesce(NULL = NULL, false), '{null}'::text[] = ARRAY[NULL]::text[]`,
    `SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')`,
    `SELECT count(*) FROM (SELECT pg_sleep(0.1)) AS waited`,
    `SELECT count(*) FROM kept`,
  ]
  const url = () => `postgres://plain:p+w@127.0.0.1:${port}/plain${parameters}`
  function read(): unknown[][] {
    const db = openConnection({ url: url(), node: 'test', statementTimeoutMs: 5_000, schema: 'public' })
    try {
      db.run('CREATE TABLE IF NOT EXISTS kept (id integer)')
      db.run(`BEGIN; INSERT INTO kept VALUES (1); DELETE FROM kept`)
      db.run('COMMIT')
      return readings.map((sql) => db.query(sql).values().flat())
    } finally {
      db.close()
    }
  }

  test('reads and writes the same under each of 35 settings', async () => {
    const expected = read()
    for (const [name, value] of Object.entries(roleSettings)) {
      if (name === 'idle_session_timeout' && parameters !== '') continue // ends the sessions of a pooler
      await cluster.sql(`ALTER ROLE plain SET ${name} = ${value}`)
      let actual: unknown
      try {
        actual = read()
      } catch (error) {
        actual = String(error)
      }
      await cluster.sql(`ALTER ROLE plain RESET ALL`)
      expect([name, actual]).toEqual([name, expected])
    }
  }, 120_000)

  test('a role that an operator made read-only reads, and its writes are refused by name', async () => {
    await cluster.sql('ALTER ROLE plain SET default_transaction_read_only = on')
    const db = openConnection({ url: url(), node: 'test', statementTimeoutMs: 5_000, schema: 'public' })
    try {
      expect(db.query('SELECT 1').values()).toEqual([[1]])
      expect(() => db.run('CREATE TABLE refused (id integer)')).toThrow('read-only transaction')
    } finally {
      db.close()
      await cluster.sql('ALTER ROLE plain RESET ALL')
    }
  })
})
