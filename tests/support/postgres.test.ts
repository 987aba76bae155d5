/** A cluster of tests survives a power cut and restarts on its address. */
import { expect, test } from 'bun:test'
import { startPostgres } from './postgres.ts'

test('a cluster starts again on its port with its data, also after it was killed', async () => {
  const cluster = await startPostgres({ settings: { max_connections: '20' } })
  await cluster.sql('CREATE TABLE item AS SELECT 7 AS n')
  await cluster.restart()
  expect(await cluster.sql('SELECT n FROM item')).toBe('7')
  await cluster.sql('CHECKPOINT')
  await cluster.kill()
  await cluster.restart()
  expect(await cluster.sql(`SELECT n, current_setting('max_connections') FROM item`)).toBe('7|20')
  await cluster.stop()
})
