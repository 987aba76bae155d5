/** Deleting on a full disk: the reserve makes it possible, and ingest resumes by itself. */
import { expect, test } from 'bun:test'
import { closeSync, existsSync, openSync, statfsSync, writeSync } from 'node:fs'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { startLog } from '../../server/log.ts'
import { deleteDueOrgs } from '../../server/identity/organizations/organizations.ts'
import { expireAll } from '../../server/operations/retention/expire-all.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from '../store/make.ts'
import { failure } from '../store/subject.ts'
import { tempDir } from '../support/temp-dir.ts'
import { unending } from '../support/unending.ts'

const dayMs = 24 * 3_600_000
const log = startLog({ level: 'error', clock: { now: () => noon } })

/** Mounting needs root and the right to mount; without it no disk can be filled. */
function mounts(folder: string, options: string): boolean {
  return Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', folder]).exitCode === 0
}

function fill(path: string): void {
  const file = openSync(path, 'a')
  const zeros = Buffer.alloc(4_096)
  try {
    for (;;) writeSync(file, zeros)
  } catch (error) {
    expect((error as { code: string }).code).toBe('ENOSPC')
  } finally {
    closeSync(file)
  }
}

const batch = (orgId: string, from: number) =>
  makeBatch(
    orgId,
    Array.from({ length: 200 }, (_, index) => {
      const id = `evt_${from + index}`
      const noise = Array.from({ length: 40 }, (_, k) => Math.sin((from + index) * 41 + k))
      return makeEvent(id, { json: JSON.stringify({ id, noise }) })
    }),
  )

const probe = tempDir('probe')
const mountable = mounts(probe.path, 'size=64k')
if (mountable) Bun.spawnSync(['umount', probe.path])
else console.warn('the full-disk test is left out: this user may not mount a tmpfs')
probe.remove()

/** About 11 MB, nearly three times the reserve with which a deletion begins. */
const full = 30_000

/** An organization with so many events that the disk, filled by others, has no space for another write. */
async function onFullDisk(work: (store: Store, orgId: string) => Promise<void>): Promise<void> {
  using dir = tempDir('full-disk')
  expect(mounts(dir.path, 'size=32m,mode=700')).toBe(true)
  try {
    const folder = dir.join('data')
    const store = await openStore({ folder, now: noon })
    const org = makeOrg()
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    for (let from = 0; from < full; from += 200) await store.events.append(batch(org.id, from))
    const removal = { orgId: org.id, askedAtMs: noon, dueAtMs: noon + dayMs }
    await store.orgs.requestDeletion({ ...removal, audit: makeAudit(org.id) })
    expect(existsSync(`${folder}/reserve`)).toBe(true)
    // Ingest stops at the floor, and an idle writer empties its log. Then others fill the rest of the disk.
    expect(await store.retention.maintain({ reason: 'deleted' })).toBe(true)
    fill(dir.join('ballast'))
    expect((await failure(store.events.append(batch(org.id, full)))).kind).toBe('storage_full')
    expect(statfsSync(dir.path).bavail).toBe(0)
    await work(store, org.id)
    expect(await store.retention.maintain({ reason: 'deleted' })).toBe(true)
    expect((await openDatabaseAdmin(folder).verifyEvents()).faults).toEqual([])
    await store.close()
  } finally {
    Bun.spawnSync(['umount', '--lazy', dir.path])
  }
}

test.if(mountable)(
  'retention frees space on a full disk, and events are accepted again',
  () =>
    onFullDisk(async (store, orgId) => {
      await expireAll(
        { store, rule: { days: 90, bytes: null, auditDays: null }, log },
        noon + 91 * dayMs,
        unending,
      )
      expect(await store.events.append(batch(orgId, full))).toMatchObject({ accepted: 200 })
      expect(await store.events.byId({ orgId, id: `evt_${full}` })).not.toBeNull()
      expect(await store.events.byId({ orgId, id: 'evt_0' })).toBeNull()
    }),
  60_000,
)

test.if(mountable)(
  'an organization due for deletion is removed on a full disk, and others can be created and filled',
  () =>
    onFullDisk(async (store, orgId) => {
      await deleteDueOrgs({ store }, log, noon + dayMs, unending)
      expect(await store.orgs.find(orgId)).toBeNull()
      const next = makeOrg()
      await store.orgs.create({ org: next, audit: makeAudit(next.id) })
      expect(await store.events.append(batch(next.id, 0))).toMatchObject({ accepted: 200 })
      expect(await store.events.byId({ orgId: next.id, id: 'evt_0' })).not.toBeNull()
    }),
  60_000,
)
