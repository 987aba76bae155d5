/** A full disk, on a small file system: the store opens, reads, rejects writes, and recovers without a restart. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { closeSync, existsSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { openStore } from '../../db/open.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { makeAudit, makeBatch, makeEvent, makeKey, makeOrg, noon } from './make.ts'
import { failure } from './subject.ts'

setDefaultTimeout(90_000) // every store starts three threads, and other suites may be running

/** Mounting needs root and the right to mount; without it no disk can be filled. */
function canMount(): boolean {
  using dir = tempDir()
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir.path]).exitCode === 0
  if (mounted) Bun.spawnSync(['umount', dir.path])
  return mounted
}

const mountable = canMount()
if (!mountable) console.warn('full-disk tests are left out: this user may not mount a tmpfs')

/** Writes zeros until nothing more fits. */
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

const bigEvent = (id: string) => makeEvent(id, { json: JSON.stringify({ id, pad: 'x'.repeat(60_000) }) })

describe.if(mountable)('on a full disk', () => {
  let dir: TempDir
  beforeAll(() => {
    dir = tempDir('full')
  })
  afterAll(() => dir.remove())

  /** A new file system of `megabytes` for one test, removed afterwards. */
  async function withDisk(megabytes: number, use: (folder: string) => Promise<void>): Promise<void> {
    const mount = ['mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', dir.path]
    expect(Bun.spawnSync(mount).exitCode).toBe(0)
    try {
      await use(dir.path)
    } finally {
      Bun.spawnSync(['umount', '--lazy', dir.path]) // also when a failed test left the store open
    }
  }

  test('rejects writes as storage_full, serves reads, and resumes writes when there is space', async () => {
    await withDisk(32, async (mount) => {
      const store = await openStore({ folder: `${mount}/data`, now: noon })
      const org = makeOrg()
      await store.orgs.create({ org, audit: makeAudit(org.id) })
      expect(await store.events.append(makeBatch(org.id, [bigEvent('before')]))).toMatchObject({
        accepted: 1,
      })
      fill(`${mount}/ballast`)
      await Bun.sleep(2_500) // the idle writer meets the full disk too, which must not end the thread
      const kinds = new Set<string>()
      for (let n = 0; n < 10; n++) {
        kinds.add((await failure(store.events.append(makeBatch(org.id, [bigEvent(`full${n}`)])))).kind)
      }
      expect([...kinds]).toEqual(['storage_full'])
      // People's verbs continue with a piece of the reserve.
      await store.keys.create({ key: makeKey(org.id), audit: makeAudit(org.id) })
      expect(statSync(`${mount}/data/reserve`).size).toBeLessThan(4 * 1024 * 1024)
      expect(await store.events.byId({ orgId: org.id, id: 'before' })).not.toBeNull()
      expect(await store.keys.list({ orgId: org.id })).toHaveLength(1)
      expect((await store.events.overview(org.id)).total).toBe(1)
      rmSync(`${mount}/ballast`)
      expect(await store.events.append(makeBatch(org.id, [bigEvent('after')]))).toMatchObject({ accepted: 1 })
      expect((await store.audit.verify([])).faults).toEqual([])
      await store.close()
      const again = await openStore({ folder: `${mount}/data`, now: noon })
      expect((await again.events.overview(org.id)).total).toBe(2)
      await again.close()
    })
  })

  test('an existing database opens for reading with a part of the reserve, which is restored later', async () => {
    await withDisk(32, async (mount) => {
      const folder = `${mount}/data`
      const first = await openStore({ folder, now: noon })
      await first.events.append(makeBatch('org_a', [makeEvent('kept')]))
      await first.close()
      expect(statSync(`${folder}/reserve`).size).toBe(4 * 1024 * 1024)
      fill(`${mount}/ballast`)
      expect(statfsSync(mount).bavail).toBe(0)
      const full = await openStore({ folder, now: noon })
      expect(statSync(`${folder}/reserve`).size).toBeWithin(1, 3 * 1024 * 1024 + 1) // the rest is for people's verbs
      expect(await full.events.byId({ orgId: 'org_a', id: 'kept' })).not.toBeNull()
      await full.close()
      rmSync(`${mount}/ballast`)
      await (await openStore({ folder, now: noon })).close()
      expect(statSync(`${folder}/reserve`).size).toBe(4 * 1024 * 1024)
    })
  })

  test('without a database and without space there is one clear error', async () => {
    await withDisk(1, async (mount) => {
      fill(`${mount}/ballast`)
      const error = await failure(openStore({ folder: `${mount}/data`, now: noon }))
      expect([error.kind, error.message]).toEqual([
        'storage_full',
        'the disk is too full to create the database',
      ])
      expect(existsSync(`${mount}/data/sightglass.db`)).toBe(false)
    })
  })

  test('a file system mounted read-only is read_only', async () => {
    await withDisk(32, async (mount) => {
      await (await openStore({ folder: `${mount}/data`, now: noon })).close()
      expect(Bun.spawnSync(['mount', '-o', 'remount,ro', mount]).exitCode).toBe(0)
      expect((await failure(openStore({ folder: `${mount}/data`, now: noon }))).kind).toBe('read_only')
    })
  })
})
