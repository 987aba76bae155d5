/** Passwords and TLS: what each `sslmode` accepts from a server with a certificate of its own. */
import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'
import { testAuthority } from '../../../tests/support/certificate.ts'
import { startPostgres } from '../../../tests/support/postgres.ts'
import { run } from '../../../tests/support/process.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { openConnection } from './connection.ts'

const cluster = await startPostgres()
const folder = tempDir()
afterAll(async () => {
  await cluster.stop()
  folder.remove()
})

const authority = testAuthority()
const { key, cert } = authority.issue('localhost')
writeFileSync(folder.join('root.crt'), authority.cert)
writeFileSync(folder.join('other.crt'), testAuthority().cert)
await writeInData('server.key', key)
await writeInData('server.crt', cert)
await writeInData('pg_hba.conf', 'local all all trust\nhostssl all node 127.0.0.1/32 scram-sha-256\n')
for (const sql of [
  `CREATE ROLE node LOGIN PASSWORD 'p@ss/word'`,
  'ALTER SYSTEM SET ssl = on',
  'SELECT pg_reload_conf()',
])
  await cluster.sql(sql)

/** The server writes its own files, which belong to its account. */
async function writeInData(name: string, text: string): Promise<void> {
  const lines = text.trimEnd().split('\n')
  const rows = lines.map((line) => `'${line}'`).join()
  await cluster.sql(`COPY (SELECT unnest(ARRAY[${rows}])) TO PROGRAM 'umask 077; cat > ${name}'`)
}

function connect(parameters: string, host = 'localhost', password = 'p%40ss%2Fword'): string {
  const { port } = new URL(cluster.url)
  const url = `postgres://node:${password}@${host}:${port}/postgres?${parameters}`
  try {
    const db = openConnection({ url, node: 'tls', statementTimeoutMs: 5_000 })
    const row = db.query<{ ssl: number }>('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()').get()
    db.close()
    return row?.ssl === 1 ? 'encrypted' : 'plain'
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    expect(error.message).not.toContain('word@')
    return error.kind
  }
}

test('an encrypted connection needs no certificate that is known, unless it is verified', () => {
  expect(['prefer', 'require', 'allow'].map((mode) => connect(`sslmode=${mode}`))).toEqual([
    'encrypted',
    'encrypted',
    'encrypted',
  ])
  expect(connect('sslmode=disable')).toBe('unavailable')
  expect(connect('sslmode=verify-full')).toBe('unavailable')
})

test('a verified connection needs the certificate of the authority and the name of the host', () => {
  const verifiedMode = `sslmode=verify-full&sslrootcert=${folder.join('root.crt')}`
  expect(connect(verifiedMode)).toBe('encrypted')
  expect(connect(verifiedMode, '127.0.0.1')).toBe('unavailable')
  expect(connect(`sslmode=verify-full&sslrootcert=${folder.join('other.crt')}`)).toBe('unavailable')
})

test('verify-ca, and require with a root certificate, check the authority but not the host', () => {
  for (const mode of ['verify-ca', 'require']) {
    const parameters = (file: string) => `sslmode=${mode}&sslrootcert=${folder.join(file)}`
    expect([mode, connect(parameters('root.crt'), '127.0.0.1')]).toEqual([mode, 'encrypted'])
    expect([mode, connect(parameters('other.crt'), 'localhost')]).toEqual([mode, 'unavailable'])
  }
})

test('the variables of libpq say what the URL does not', async () => {
  const { port } = new URL(cluster.url)
  const env = {
    PGHOST: 'localhost',
    PGPORT: port,
    PGUSER: 'node',
    PGPASSWORD: 'p@ss/word',
    PGDATABASE: 'postgres',
    PGSSLMODE: 'verify-full',
    PGSSLROOTCERT: folder.join('root.crt'),
  }
  const connects = async (environment: Record<string, string>) => {
    const code = `import { openConnection } from '${import.meta.dir}/connection.ts'
      const db = openConnection({ url: 'postgres://', node: 'env', statementTimeoutMs: 5000 })
      console.log(db.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()').get().ssl)
      db.close()`
    const child = run([process.execPath, '-e', code], {
      cwd: '/',
      env: { PATH: '/usr/bin', ...env, ...environment },
    })
    return [await child.exited, child.stdout().trim()]
  }
  expect(await connects({})).toEqual([0, '1'])
  expect(await connects({ PGSSLROOTCERT: folder.join('other.crt') })).toEqual([1, ''])
})

test('a wrong password is unavailable', () => {
  expect(connect('sslmode=require', 'localhost', 'wrong')).toBe('unavailable')
})
