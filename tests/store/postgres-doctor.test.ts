/** What `doctor` finds about a PostgreSQL server: each setting that is wrong, on a real server that has it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { openDatabaseAdmin } from '../../db/open.ts'
import { transactionsFinding } from '../../db/postgres/admin/activity-findings.ts'
import { findingsOf } from '../../db/postgres/admin/findings.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { serverOptions } from '../../db/postgres/connection/options.ts'
import type { Checkup, Finding } from '../../db/contract/operations.ts'
import { hasPooler, startPooler, startPostgres, type Cluster } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { startReceiveWal } from '../support/receive-wal.ts'

setDefaultTimeout(90_000)

let sound: Cluster
let wrong: Cluster

beforeAll(async () => {
  const replication = { wal_level: 'replica', max_wal_senders: '4' }
  sound = await startPostgres({ fsync: true, settings: { ...replication, max_prepared_transactions: '2' } })
  wrong = await startPostgres({ settings: { max_connections: '20', autovacuum_freeze_max_age: '100000' } })
  for (const { url } of [sound, wrong]) await openDatabaseAdmin(url).migrate(Date.now())
})
afterAll(() => Promise.all([sound, wrong].map((cluster) => cluster.stop())))

async function checkUp({ url }: Cluster, now = Date.now()): Promise<Checkup> {
  return openDatabaseAdmin(url).checkUp(now)
}

/** On a connection of its own, as `checkUp` does, but without a thread. */
function finding({ url }: Pick<Cluster, 'url'>, id: string, now = Date.now()): Finding {
  const db = openConnection({ url, node: 'doctor', statementTimeoutMs: 5_000 })
  try {
    const { prepare } = serverOptions({ url, node: 'doctor', statementTimeoutMs: 0 })
    const findings = findingsOf(db, { schema: 'sightglass', now, prepare, isPooled: false })
    return findings.find((candidate) => candidate.id === `database-${id}`)!
  } finally {
    db.close()
  }
}

/** Sets it for new connections to the database `postgres`, and resets it afterwards. */
async function withSetting(
  cluster: Cluster,
  name: string,
  value: string,
  work: () => Promise<void>,
): Promise<void> {
  // From another database, which it does not hold for.
  await cluster.sql(`ALTER DATABASE postgres SET ${name} = ${value}`, 'template1')
  await work().finally(() => cluster.sql(`ALTER DATABASE postgres RESET ${name}`, 'template1'))
}

test('a sound server has no finding that needs anything', async () => {
  const { findings, nodes } = await checkUp(sound)
  expect(findings.filter(({ status }) => status !== 'ok')).toEqual([])
  expect(findings.map(({ id }) => id.replace('database-', ''))).toEqual([
    'version',
    'durability',
    'settings',
    'encoding',
    'clock',
    'pooler',
    'connections',
    'transactions',
    'vacuum',
    'age',
    'primary',
    'standbys',
    'slots',
  ])
  expect(nodes).toEqual([])
})

test('fsync, full_page_writes and synchronous_commit decide what an acknowledgement is worth', async () => {
  expect(finding(wrong, 'durability')).toMatchObject({
    status: 'failure',
    detail: expect.stringContaining('fsync and full_page_writes are off'),
    hint: expect.stringContaining('ALTER SYSTEM SET fsync = on'),
  })
  await withSetting(sound, 'synchronous_commit', 'off', async () => {
    expect(finding(sound, 'durability')).toMatchObject({
      status: 'failure',
      detail: expect.stringContaining('synchronous_commit is off'),
    })
  })
})

test('triggers that are off are a failure', async () => {
  await withSetting(sound, 'session_replication_role', "'replica'", async () => {
    expect(finding(sound, 'settings')).toMatchObject({
      status: 'failure',
      detail: expect.stringContaining('audit trail are off'),
    })
  })
})

test.each([
  ['default_transaction_isolation', "'serializable'"],
  ['idle_session_timeout', '60000'],
])('%s = %s is no finding: each session sets its own', async (name, value) => {
  await withSetting(sound, name, value, async () => {
    expect(finding(sound, 'settings').status).toBe('ok')
  })
})

test('a database that refuses writes, and one of another encoding', async () => {
  await withSetting(sound, 'default_transaction_read_only', 'on', async () => {
    expect(finding(sound, 'primary')).toMatchObject({ status: 'failure' })
  })
  await sound.sql(`CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
  const url = sound.url.replace(/postgres$/, 'latin')
  await openDatabaseAdmin(url).migrate(Date.now())
  expect(finding({ ...sound, url }, 'encoding')).toMatchObject({
    status: 'failure',
    detail: expect.stringContaining('LATIN1'),
  })
})

test('a clock that differs from the database', async () => {
  expect(finding(sound, 'clock', Date.now() - 3_600_000)).toMatchObject({
    status: 'warning',
    detail: expect.stringMatching(/3\d\d\d\.\d s behind/),
  })
})

test('connections: too few for the nodes, and nearly all in use', async () => {
  expect(finding(wrong, 'connections').status).toBe('ok') // 17 of 20 for one node
  await wrong.sql(
    `INSERT INTO sightglass.node SELECT 'n' || n, '1', 'all', 0, extract(epoch FROM now()) * 1000 FROM generate_series(1, 3) n`,
  )
  expect(finding(wrong, 'connections')).toMatchObject({
    status: 'warning',
    detail: expect.stringContaining('3 nodes need up to 51, 17 each'),
    hint: expect.stringContaining('max_connections to at least 6'),
  })
  expect((await checkUp(wrong)).nodes.map(({ name }) => name)).toEqual(['n1', 'n2', 'n3'])
  const open = Array.from({ length: 15 }, () => wrong.sql('SELECT pg_sleep(3)'))
  const sleeping = () => wrong.sql(`SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(3)'`)
  await until(async () => Number(await sleeping()) === open.length)
  expect(finding(wrong, 'connections').status).toBe('failure')
  await Promise.all(open)
})

test('dead rows, autovacuum that is off, and transaction ids that nothing freezes', async () => {
  await wrong.sql(`ALTER SYSTEM SET autovacuum = off; `)
  await wrong.sql('SELECT pg_reload_conf()')
  await until(async () => finding(wrong, 'vacuum').status === 'failure')
  expect(finding(wrong, 'age').status).toBe('ok')
  await wrong.sql(`DO $$ BEGIN FOR n IN 1..112000 LOOP
    BEGIN PERFORM pg_current_xact_id(); INSERT INTO sightglass.cache_version VALUES ('x', 1); RAISE EXCEPTION 'x';
    EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$`)
  expect(finding(wrong, 'age')).toMatchObject({
    status: 'warning',
    hint: expect.stringContaining('freeze'),
  })

  // A table of its own setting: the server's must be on for the check to look at tables.
  await sound.sql(`ALTER TABLE sightglass.cache_version SET (autovacuum_enabled = off);
    INSERT INTO sightglass.cache_version SELECT 'dead' || n, 1 FROM generate_series(1, 20000) n;
    DELETE FROM sightglass.cache_version WHERE name LIKE 'dead%'`)
  await until(async () => finding(sound, 'vacuum').status === 'warning')
  expect(finding(sound, 'vacuum')).toMatchObject({
    detail: expect.stringContaining(
      'The table cache_version has 20,000 dead rows and 0 live ones (never vacuumed)',
    ),
    hint: expect.stringContaining('sightglass.cache_version'),
  })
})

test('a transaction that nobody ends', async () => {
  const db = openConnection({ url: sound.url, node: 'doctor', statementTimeoutMs: 5_000 })
  expect(transactionsFinding(db).status).toBe('ok')
  const sleeping = sound.sql('BEGIN; SELECT pg_sleep(2); COMMIT')
  await until(() => transactionsFinding(db, 0).hint?.includes('pg_terminate_backend') === true)
  expect(transactionsFinding(db).status).toBe('ok') // it is young
  await sleeping
  await sound.sql(`BEGIN; CREATE TABLE held (n int); PREPARE TRANSACTION 'it''s half'`)
  await until(() => transactionsFinding(db, 0).hint === "ROLLBACK PREPARED 'it''s half';")
  await sound.sql(`ROLLBACK PREPARED 'it''s half'`)
  db.close()
})

test('standbys: none synchronous, one synchronous, one configured but disconnected, and an unused slot', async () => {
  expect(finding(sound, 'standbys').hint).toContain('Several nodes')
  const first = await startReceiveWal(sound, 'copy_one')
  await until(async () => finding(sound, 'standbys').status === 'warning')
  expect(finding(sound, 'standbys').detail).toContain('"copy_one" (async). None is synchronous')
  await sound.sql(`ALTER SYSTEM SET synchronous_standby_names = 'copy_one'`)
  await sound.sql('SELECT pg_reload_conf()')
  await until(async () => finding(sound, 'standbys').status === 'ok')
  expect(finding(sound, 'standbys').detail).toContain('"copy_one" (sync)')
  await withSetting(sound, 'synchronous_commit', 'local', async () => {
    expect(finding(sound, 'durability').status).toBe('warning')
  })
  await first.stop()
  await until(async () => finding(sound, 'standbys').status === 'failure')
  await sound.sql('ALTER SYSTEM RESET synchronous_standby_names')
  await sound.sql('SELECT pg_reload_conf()')
  await sound.sql(`SELECT pg_create_physical_replication_slot('unused', true)`)
  expect(finding(sound, 'slots')).toMatchObject({
    status: 'warning',
    hint: expect.stringContaining("pg_drop_replication_slot('unused')"),
  })
  await sound.sql(`SELECT pg_drop_replication_slot('unused')`)
})

test.if(hasPooler)('a pooler needs prepare=false, which is a waste without one', async () => {
  const pooler = await startPooler(sound, 2)
  const pooled = { ...sound, url: pooler.url('postgres') }
  expect((await checkUp(pooled)).findings.find(({ id }) => id === 'database-pooler')).toMatchObject({
    status: 'ok',
    detail: expect.stringContaining('A pooler shares'),
  })
  const message = await checkUp({ ...pooled, url: pooled.url.replace('?prepare=false', '') }).catch(String)
  expect(message).toContain('a pooler needs prepare=false in the URL')
  // One that ignores the settings of a session instead.
  const db = openConnection({ url: sound.url, node: 'doctor', statementTimeoutMs: 5_000 })
  const query = { schema: 'sightglass', now: Date.now(), prepare: true, isPooled: true }
  expect(findingsOf(db, query).find(({ id }) => id === 'database-pooler')?.status).toBe('failure')
  db.close()
  await pooler.stop()
  const wasted = { ...sound, url: `${sound.url}?prepare=false` }
  expect(finding(wasted, 'pooler').detail).toContain('remove prepare=false')
})

test('a standby refuses writes', async () => {
  await sound.sql(`COPY (SELECT 1) TO PROGRAM 'touch standby.signal'`)
  await sound.restart()
  expect(finding(sound, 'primary')).toMatchObject({
    status: 'failure',
    hint: expect.stringContaining('target_session_attrs=read-write'),
  })
})
