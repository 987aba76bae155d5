/** A node that knows a primary and its standby: it uses the primary, whichever that is. */
import { expect, test } from 'bun:test'
import { openPostgresStore } from '../../db/postgres/store.ts'
import { StoreError } from '../../db/contract/errors.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from '../store/make.ts'
import { failure } from '../store/subject.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'

const settings = { wal_level: 'replica', max_wal_senders: '4' }
const portOf = ({ url }: Cluster) => Number(new URL(url).port)
const opening = { now: noon, node: 'one', readers: 1, readDeadlineMs: 10_000 }

/** Again while the fail-over lasts, as a client does. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (const endMs = performance.now() + 30_000; ; await Bun.sleep(50)) {
    try {
      return await work()
    } catch (error) {
      const isAway = error instanceof StoreError && error.kind === 'unavailable'
      if (!isAway || performance.now() > endMs) throw error
    }
  }
}

test('a store given two servers writes to the primary, survives a fail-over and refuses a standby', async () => {
  const primary = await startPostgres({ settings })
  const copy = await startPostgres({ settings, standbyOf: { port: portOf(primary), name: 'copy' } })
  await primary.sql(`ALTER SYSTEM SET synchronous_standby_names = 'copy'`)
  await primary.sql('SELECT pg_reload_conf()')
  const ports = [portOf(copy), portOf(primary)]
  const url = `postgres://postgres@${ports.map((port) => `127.0.0.1:${port}`).join()}/postgres`
  const store = await openPostgresStore({ ...opening, url })
  const org = makeOrg()
  await store.orgs.create({ org, audit: makeAudit(org.id) })
  await store.events.append(makeBatch(org.id, [makeEvent('before')]))
  const refused = await failure(openPostgresStore({ ...opening, url: copy.url }))
  expect(refused.kind).toBe('unavailable')

  await primary.kill()
  await copy.promote()
  await again(() => store.events.append(makeBatch(org.id, [makeEvent('after')])))
  await again(() => store.audit.append(makeAudit(org.id)))
  const total = await again(async () => (await store.events.overview(org.id)).total)
  expect(total).toBe(2)
  await store.close()
  await copy.stop()
}, 60_000)
