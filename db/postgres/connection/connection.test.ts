/** Connections that block, on a real server: values, statements, transactions, loss of the connection. */
import { afterAll, expect, test } from 'bun:test'
import { DrizzleQueryError } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { inTransaction, type Database, type SqlValue } from '../../sql/database.ts'
import { database, hasPooler, startPooler, startPostgres } from '../../../tests/support/postgres.ts'
import { run } from '../../../tests/support/process.ts'
import { openConnection } from './connection.ts'
import { storeError } from './failure.ts'

const { url, cluster, name } = await database()
const open = (parameters = ''): Database =>
  openConnection({ url: `${url}${parameters}`, node: 'test', statementTimeoutMs: 5_000, schema: 'public' })
const db = open()
afterAll(() => db.close())
db.run(`CREATE TABLE item (id bigint PRIMARY KEY, "orgId" text COLLATE "C", n double precision, body bytea)`)

function kindOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof StoreError) return error.kind
    throw error
  }
  return 'nothing thrown'
}

test('values return as they do from SQLite', () => {
  const row = db
    .query(
      `SELECT CAST(? AS bigint) AS n, 1.5::numeric AS half, 1e300::float8 AS large, NULL AS nothing, true AS yes,
      CAST(? AS text) AS text, CAST(? AS bytea) AS bytes, '{"a": 1}'::jsonb AS json, sum(2::bigint) AS minAt`,
    )
    .get(2 ** 52, `ü'"$1?`, new Uint8Array([0, 1, 255]).subarray(1))
  expect(row).toEqual({
    n: 2 ** 52,
    half: 1.5,
    large: 1e300,
    nothing: null,
    yes: 1,
    text: `ü'"$1?`,
    bytes: new Uint8Array([1, 255]),
    json: '{"a": 1}',
    minAt: 2,
  })
})

test('bytes have a buffer of their own, so that a view of numbers can begin at 0', () => {
  const numbers = new Float64Array([1.5, 2.5])
  db.query('INSERT INTO item (id, orgId, n, body) VALUES (?, ?, ?, ?)').run(
    1,
    'a',
    0.1,
    new Uint8Array(numbers.buffer),
  )
  const { body, n } = db
    .query<{ body: Uint8Array<ArrayBuffer>; n: number }>('SELECT body, n FROM item WHERE id = ?')
    .get(1)!
  expect([body.byteOffset, body.buffer.byteLength, n]).toEqual([0, 16, 0.1])
  expect(new Float64Array(body.buffer)).toEqual(numbers)
  expect(db.query('DELETE FROM item WHERE orgId = ?').run('a')).toEqual({ changes: 1 })
})

test('get, all, values and iterate return the same rows', () => {
  const sql = 'SELECT i, i % ?2 AS rest FROM generate_series(1, CAST(?1 AS int)) AS list(i) ORDER BY i'
  const series = db.query<{ i: number; rest: number }>(sql)
  for (const count of [0, 1, 255, 256, 257, 1_024]) {
    const rows = series.all(count, 7)
    expect(rows.length).toBe(count)
    expect([...series.iterate(count, 7)]).toEqual(rows)
    expect(series.values(count, 7)).toEqual(rows.map(({ i, rest: restValue }) => [i, restValue]))
    expect(series.get(count, 7)).toEqual(rows[0] ?? null)
  }
  for (const { i } of series.iterate(10_000, 7)) if (i === 300) break
  expect(series.get(1, 7)).toEqual({ i: 1, rest: 1 })
})

test('an error in the middle of iterate ends it, and the connection still works', () => {
  const failing = db.query('SELECT 1 / (500 - i) AS x FROM generate_series(1, 1000) AS list(i)')
  expect(kindOf(() => [...failing.iterate()])).toBe('internal')
  expect(db.query('SELECT 1 AS one').get()).toEqual({ one: 1 })
})

test('runEach runs every row, and in a transaction a failing one undoes all', () => {
  const upsert =
    'INSERT INTO item (id, n) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET n = item.n + excluded.n'
  const sums = () => db.query('SELECT count(*) AS rows, sum(n) AS n, sum(id * n) AS product FROM item').get()
  for (const step of [1, 0.5]) {
    // Whole numbers travel as lists, in one statement for a thousand rows. Others run one by one.
    const rows: SqlValue[][] = Array.from({ length: 2_500 }, (_, id) => [id, step])
    for (let round = 0; round < 2; round++) inTransaction(db, () => db.runEach(upsert, rows))
    const whole = { rows: 2_500, n: 5_000 * step, product: 2 * step * ((2_499 * 2_500) / 2) }
    expect(sums()).toEqual(whole)
    const broken = rows.with(1_700, ['x', 1])
    expect(kindOf(() => inTransaction(db, () => db.runEach(upsert, broken)))).toBe('internal')
    expect([sums(), db.inTransaction]).toEqual([whole, false])
    inTransaction(db, () =>
      db.runEach(
        'UPDATE item SET n = n - ?1 WHERE id = ?2',
        rows.map(([id]) => [step, id!]),
      ),
    )
    inTransaction(db, () =>
      db.runEach(
        'DELETE FROM item WHERE id = ?2 AND n = ?1',
        rows.map(([id]) => [step, id!]),
      ),
    )
    expect(sums()).toEqual({ rows: 0, n: null, product: null })
  }
})

test('errors of the server have a kind', () => {
  const insert = db.query('INSERT INTO item (id) VALUES (?)')
  insert.run(1)
  expect(kindOf(() => insert.run(1))).toBe('conflict')
  expect(kindOf(() => db.run('SELECT * FROM missing'))).toBe('internal')
  expect(kindOf(() => db.run('SET statement_timeout = 20; SELECT pg_sleep(5)'))).toBe('unavailable')
  db.run('RESET statement_timeout')
  db.run(db.dialect.beginRead)
  expect(kindOf(() => db.run('DELETE FROM item'))).toBe('not_writable') // as a standby refuses it
  db.run('ROLLBACK')
})

test('a statement that fails in a transaction fails its COMMIT, also when nobody noticed', () => {
  const swallowed = () =>
    inTransaction(db, () => {
      db.query('INSERT INTO item (id) VALUES (?)').run(7)
      expect(kindOf(() => db.query('SELECT 1 / 0').get())).toBe('internal')
    })
  expect(kindOf(swallowed)).toBe('internal')
  expect(db.inTransaction).toBe(false)
  expect(db.query('SELECT id FROM item WHERE id = 7').get()).toBe(null)
})

test('a connection lost in a transaction fails it whole, and the next one connects again', async () => {
  const pid = () => db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid').get()!.pid
  const first = pid()
  db.query('BEGIN').run()
  db.query('INSERT INTO item (id) VALUES (?)').run(8)
  await cluster.sql(`SELECT pg_terminate_backend(${first})`)
  const insert = () => db.query('INSERT INTO item (id) VALUES (?)').run(9)
  expect([kindOf(insert), kindOf(insert), db.inTransaction]).toEqual(['unavailable', 'unavailable', true])
  expect(kindOf(() => db.query('COMMIT').run())).toBe('unavailable')
  expect(db.inTransaction).toBe(false)
  expect(pid()).not.toBe(first)
  expect(db.query('SELECT id FROM item WHERE id >= 8').all()).toEqual([])
})

test('a connection lost between two reads is opened again', async () => {
  await cluster.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
  const answers = [1, 2].map(() => kindOf(() => db.query('SELECT 1').get()))
  expect(answers.at(-1)).toBe('nothing thrown')
})

test('a server that dies during a statement is connected to again when it is back', async () => {
  const ownCluster = await startPostgres()
  const pid = ownCluster.pid()
  const away = openConnection({ url: ownCluster.url, node: 'test', statementTimeoutMs: 5_000 })
  const killer = run(['sh', '-c', `sleep 0.3; kill -STOP ${pid}; pkill -9 -P ${pid}; kill -9 ${pid}`], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '' },
  })
  expect(kindOf(() => away.query('SELECT pg_sleep(3)').get())).toBe('unavailable')
  await killer.exited
  expect(kindOf(() => away.query('SELECT 1').get())).toBe('unavailable')
  await ownCluster.restart()
  expect(away.query('SELECT 1 AS one').get()).toEqual({ one: 1 })
  away.close()
  await ownCluster.stop()
})

test('a server that is not there is unavailable, and a URL that cannot be used is not', () => {
  const errorKind = (url: string) =>
    kindOf(() => openConnection({ url, node: 'test', statementTimeoutMs: 1_000 }))
  expect(errorKind('postgres://postgres@127.0.0.1:1/postgres')).toBe('unavailable')
  expect(errorKind(`${url}_missing`)).toBe('unavailable')
  expect(errorKind(`${url}?unknown=1`)).toBe('internal')
  expect(errorKind('mysql://localhost')).toBe('internal')
})

test('a proxy without a server, which accepts and closes, is asked once for each request', async () => {
  const program = `const socket = { open: (one) => { console.log('connected'); one.end() }, data() {} }
    console.log(Bun.listen({ hostname: '127.0.0.1', port: 0, socket }).port)`
  const proxy = run([process.execPath, '-e', program], { cwd: '/', env: {} })
  const port = await proxy.line(Number, 10_000)
  const address = `postgres://postgres@127.0.0.1:${port}/postgres`
  const open = () => openConnection({ url: address, node: 'test', statementTimeoutMs: 5_000 })
  expect([kindOf(open), kindOf(open)]).toEqual(['unavailable', 'unavailable'])
  proxy.signal('SIGTERM')
  await proxy.exited
  expect(proxy.stdout().match(/connected/g)?.length).toBe(2)
})

test('without prepared statements, and over the Unix socket', () => {
  const socket = open(`?prepare=false&host=${encodeURIComponent(cluster.socketFolder)}`)
  expect(socket.query('SELECT CAST(? AS bigint) AS n').get(5)).toEqual({ n: 5 })
  expect([...socket.query('SELECT i FROM generate_series(1, 600) AS l(i)').iterate()].length).toBe(600)
  expect(socket.query('SELECT count(*) AS n FROM pg_prepared_statements').get()).toEqual({ n: 0 })
  socket.close()
})

test('an error of drizzle becomes the error below it, without the bound values', () => {
  const conflict = new StoreError('conflict', 'taken')
  expect(storeError(new DrizzleQueryError('INSERT', ['secret'], conflict), 'insert')).toBe(conflict)
  const unknown = storeError(new DrizzleQueryError('INSERT', ['secret'], new Error('odd')), 'insert')
  expect([unknown.kind, unknown.message]).toEqual(['internal', 'insert: odd'])
})

test.if(hasPooler)(
  'through a pooler that changes connections, every transaction has the settings of its node',
  async () => {
    const pooler = await startPooler(cluster, 2)
    const nodes = ['public', 'pg_catalog', 'public', 'pg_catalog'].map((schema) => {
      const options = { url: pooler.url(name), node: 'test', statementTimeoutMs: 5_000 }
      return { schema, node: openConnection({ ...options, schema }) }
    })
    const settings = `SELECT current_setting('search_path') AS path, current_setting('statement_timeout') AS wait,
    pg_backend_pid() AS pid, CAST(? AS bigint) AS n`
    const pids = new Set<unknown>()
    for (let round = 0; round < 3; round++) {
      for (const { node, schema } of nodes) {
        const read = () =>
          node.query<{ path: string; wait: string; pid: number; n: number }>(settings).get(round)!
        const inside = inTransaction(node, read)
        for (const { path, wait, n, pid } of [read(), inside]) {
          expect([path, wait, n]).toEqual([schema, '5s', round])
          pids.add(pid)
        }
        const series = node.query<{ i: number }>('SELECT i FROM generate_series(1, 600) AS l(i)')
        expect([...series.iterate()].length).toBe(600)
        for (const { i } of series.iterate()) if (i === 5) break
      }
    }
    expect(pids.size).toBeLessThanOrEqual(2)
    const [first, , thirdNode] = nodes.map(({ node }) => node)
    db.run('TRUNCATE item')
    // Both are in a transaction at once, so they have different connections.
    first!.query('BEGIN').run()
    first!.query('INSERT INTO item (id) VALUES (?)').run(99)
    expect(thirdNode!.query('SELECT count(*) AS n FROM item').get()).toEqual({ n: 0 })
    expect(kindOf(() => thirdNode!.query('SELECT 1 / 0').get())).toBe('internal')
    expect(thirdNode!.inTransaction).toBe(false)
    first!.query('COMMIT').run()
    expect(thirdNode!.query('SELECT count(*) AS n FROM item').get()).toEqual({ n: 1 })
    for (const { node } of nodes) node.close()
    await pooler.stop()
  },
)
