/** Another program that locks the database: reads go on, the server is not ready, and then it is again. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { event } from '../support/events.ts'
import { testServer } from '../support/server.ts'
import { until } from '../support/until.ts'

test('a lock refuses writes with the reason, as long as it lasts', async () => {
  await using server = await testServer()
  const key = await server.key('ingest')
  const post = (id: string) => server.call('/v1/sdk/events', { key, body: { events: [event(id)] } })
  const readyz = async () => {
    const response = await server.call('/readyz')
    const { message = '' } = (await response.json()) as { message?: string }
    return [response.status, message]
  }
  expect((await post('before')).status).toBe(202)
  expect(await readyz()).toEqual([200, ''])
  using outsider = new Database(join(server.dataDir, 'sightglass.db'))
  outsider.run('BEGIN IMMEDIATE')
  const refused = await post('during')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await refused.json()).toMatchObject({
    error: 'unavailable',
    message: 'Another program locks the database. Nothing in this request was stored. Try again in a second.',
  })
  expect(await readyz()).toEqual([503, 'store: the last write failed: another program locks the database'])
  outsider.run('ROLLBACK')
  await until(async () => (await readyz())[0] === 200, 30_000)
  expect((await post('during')).status).toBe(202)
  expect((await server.store.events.overview(server.org.id)).total).toBe(2)
}, 90_000)
