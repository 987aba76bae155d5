/** The disk of a PostgreSQL database is full: ingest answers 507, reads go on, and writes resume with the space. */
import { expect, test } from 'bun:test'
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { openPostgresStore } from '../../db/postgres/store.ts'
import { event } from '../support/events.ts'
import { startPostgres } from '../support/postgres.ts'
import { testServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAudit, makeOrg } from '../store/make.ts'

const dir = tempDir('full')
const mount = (options: string) =>
  Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', dir.path]).exitCode === 0
const unmount = () => Bun.spawnSync(['umount', '--lazy', dir.path])
const mayMount = mount('size=64k')
if (mayMount) unmount()

/** Writes zeros until nothing more fits. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    while (writeSync(file, Buffer.alloc(4_096)) > 0);
  } catch {
    // It is full.
  }
  closeSync(file)
}

test.if(mayMount)(
  'a full tablespace is 507 for senders, and only as long as it is full',
  async () => {
    const cluster = await startPostgres()
    try {
      const { uid, gid } = statSync(cluster.socketFolder)
      expect(mount(`size=32m,mode=700,uid=${uid},gid=${gid}`)).toBe(true)
      await cluster.sql(`CREATE TABLESPACE small LOCATION '${dir.path}'`)
      await cluster.sql('CREATE DATABASE tight TABLESPACE small TEMPLATE template0')
      const url = cluster.url.replace(/postgres$/, 'tight')
      const open = async () => {
        const opening = { url, node: 'one', now: Date.now(), readers: 1, readDeadlineMs: 10_000 }
        const store = await openPostgresStore(opening)
        const org = makeOrg({ slug: 'default' })
        await store.call('orgs.bootstrap', { org, audit: makeAudit('org_system') })
        return store
      }
      await using server = await testServer({}, 'quick', { open })
      const key = await server.key('ingest')
      const secret = await server.key('secret')
      let sentCount = 0
      const post = async () => {
        const pad = Buffer.from(crypto.getRandomValues(new Uint8Array(9_000))).toString('base64')
        const events = Array.from({ length: 20 }, () => event(`evt_${++sentCount}`, { metadata: { pad } }))
        return (await server.call('/v1/sdk/events', { key, body: { events } })).status
      }
      expect(await post()).toBe(202)
      fill(dir.join('ballast'))
      let status = 0
      for (let tries = 0; status !== 507 && tries < 50; tries++) status = await post() // free pages first
      expect(status).toBe(507)
      expect(server.store.events.pressure().full).toBe(true)
      expect((await server.call('/v1/metrics', { key: secret })).status).toBe(200)
      rmSync(dir.join('ballast'))
      for (let tries = 0; status !== 202 && tries < 50; tries++, await Bun.sleep(100)) status = await post()
      expect(status).toBe(202)
    } finally {
      await cluster.stop()
      Bun.spawnSync(['umount', '--lazy', dir.path])
      dir.remove()
    }
  },
  90_000,
)
