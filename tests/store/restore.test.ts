/** Restoring into an empty folder, over data, over damage; undo in one step; rejected without changes. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { createBackup } from '../../server/operations/backup/create.ts'
import { planRestore, restoreBackup, undoRestore } from '../../server/operations/backup/restore.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { openSecretBox } from '../../server/system/encryption.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import { auditOf } from './subject.ts'
import { makeEndpoint } from './webhook-make.ts'

setDefaultTimeout(60_000)

let now = noon
const clock = { now: () => (now += 1_000) }

interface Folder {
  dataDir: string
  backup: string
}

const secret = 'a long passphrase'
let original: TempDir

/** Two events in a plain and an encrypted backup, and a third event and an organization added after them. */
beforeAll(async () => {
  original = tempDir('restore')
  const dataDir = original.join('data')
  const store = await openDataFolder(dataDir, clock)
  openSecretBox(dataDir)
  const org = await defaultOrg(store)
  await store.events.append(makeBatch(org, [makeEvent('a'), makeEvent('b')]))
  const endpoint = makeEndpoint(org, 'ep_1')
  await store.webhooks.createEndpoint({
    endpoint,
    audit: makeAudit(org, { action: 'webhook_endpoint.created' }),
  })
  for (const passphrase of [null, secret]) {
    const dir = original.join('backups')
    const { path } = await createBackup({ dataDir, dir, reason: 'manual', passphrase, clock })
    renameSync(path, original.join(passphrase === null ? 'plain.backup' : 'encrypted.backup'))
  }
  await store.events.append(makeBatch(org, [makeEvent('c')]))
  const later = makeOrg({ slug: 'later' })
  await store.orgs.create({ org: later, audit: makeAudit('org_system', { action: 'org.created' }) })
  await store.close()
})
afterAll(() => original.remove())

/** A copy of the folder and of one of its backups. */
function lived(temp: TempDir, backupName: 'plain' | 'encrypted' = 'plain'): Folder {
  const dataDir = temp.join('data')
  const backup = temp.join('a.backup')
  cpSync(original.join('data'), dataDir, { recursive: true })
  cpSync(original.join(`${backupName}.backup`), backup)
  return { dataDir, backup }
}

async function defaultOrg(store: Awaited<ReturnType<typeof openStore>>): Promise<string> {
  return (await store.orgs.find('default'))!.id
}

/** What people would see: events, organizations, and whether the audit trail is valid. */
async function contentOf(dataDir: string) {
  const store = await openStore({ folder: dataDir, now: clock.now() })
  const { total } = await store.events.overview(await defaultOrg(store))
  const slugs = (await store.orgs.list()).map(({ slug }) => slug).sort()
  const trail = (await auditOf(store, 'org_system')).map(({ action }) => action).reverse()
  await store.close()
  return { total, slugs, trail, faults: (await openDatabaseAdmin(dataDir).verifyAudit()).faults }
}

const expectedContent = {
  total: 3,
  slugs: ['default', 'later'],
  trail: ['org.created', 'org.created'],
  faults: [],
}
const restored = { total: 2, slugs: ['default'], trail: ['org.created', 'appliance.restored'], faults: [] }

const restoreRequest = (dataDir: string, path: string, options: object = {}) => {
  return {
    dataDir,
    path,
    passphrase: null,
    keyFile: null,
    overwrite: false,
    allowPlain: false,
    clock,
    ...options,
  }
}

/** Every file with its bytes, except those that opening a database for reading leaves. */
function bytesOf(folder: string): { [name: string]: string } {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  const files = names.filter(
    (name) => statSync(join(folder, name)).isFile() && !/-(shm|wal)$|\.lock$/.test(name),
  )
  return Object.fromEntries(
    files.map((name) => [name, Bun.hash(readFileSync(join(folder, name))).toString()]),
  )
}

async function endpointsOf(dataDir: string) {
  const store = await openStore({ folder: dataDir, now: clock.now() })
  const org = await defaultOrg(store)
  const [firstEndpoint] = await store.webhooks.endpoints(org)
  const [newest] = await auditOf(store, org)
  await store.close()
  return { status: firstEndpoint!.endpoint.status, newest: newest!.action }
}

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof Error) return error.message
  }
  return 'it was done'
}

test('into an empty folder: the same events, and a valid trail that records the restore', async () => {
  using temp = tempDir('restore')
  const { backup } = lived(temp)
  const elsewhere = temp.join('elsewhere')
  const restoration = await restoreBackup(restoreRequest(elsewhere, backup))
  expect(restoration).toMatchObject({ events: 2, replaced: null })
  expect(await contentOf(elsewhere)).toEqual(restored)
  expect(
    readdirSync(elsewhere).filter((name) => /^(\.restoring|restore-unfinished|replaced-)/.test(name)),
  ).toEqual([])
})

test('over data: only with the option, undone in one step, and the undo is undone too', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  const untouched = bytesOf(dataDir)
  expect(await refusal(restoreBackup(restoreRequest(dataDir, backup)))).toContain('already contains data')
  expect(bytesOf(dataDir)).toEqual(untouched)
  const restoration = await restoreBackup(restoreRequest(dataDir, backup, { overwrite: true }))
  expect(restoration.replaced).toMatchObject({ events: 3 })
  expect(await contentOf(dataDir)).toEqual(restored)
  await undoRestore(dataDir, clock)
  expect(await contentOf(dataDir)).toEqual({
    ...expectedContent,
    trail: [...expectedContent.trail, 'appliance.restored'],
  })
  await undoRestore(dataDir, clock)
  expect(await contentOf(dataDir)).toMatchObject({ total: 2, slugs: ['default'], faults: [] })
})

test('a dry run verifies and reports, and changes nothing', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  const untouched = bytesOf(dataDir)
  const plan = await planRestore(restoreRequest(dataDir, backup))
  expect(plan).toMatchObject({ events: 2, replaced: { events: 3 } })
  expect(bytesOf(dataDir)).toEqual(untouched)
  writeFileSync(backup, Buffer.concat([readFileSync(backup).subarray(0, -1), Buffer.from('x')]))
  expect(await refusal(planRestore(restoreRequest(dataDir, backup)))).toContain('not a complete backup')
})

test('over damage: the broken database moves aside, and the new one gets nothing of its log', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  writeFileSync(join(dataDir, 'sightglass.db'), Buffer.alloc(65_536, 7))
  writeFileSync(join(dataDir, 'sightglass.db-wal'), Buffer.alloc(40_000, 9))
  const restoration = await restoreBackup(restoreRequest(dataDir, backup, { overwrite: true }))
  expect(restoration.replaced).toMatchObject({ events: null })
  expect(await contentOf(dataDir)).toEqual(restored)
  const aside = restoration.replaced!.path
  expect(readFileSync(join(aside, 'sightglass.db'))).toEqual(Buffer.alloc(65_536, 7))
  expect(existsSync(join(aside, 'audit-heads'))).toBe(true)
})

test('rejected while another process holds the folder', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  const store = await openStore({ folder: dataDir, now: clock.now() })
  expect(await refusal(restoreBackup(restoreRequest(dataDir, backup, { overwrite: true })))).toMatch(
    /in use by process/,
  )
  expect(await refusal(undoRestore(dataDir, clock))).toContain('nothing to undo')
  await store.close()
  expect(await contentOf(dataDir)).toEqual(expectedContent)
})

test('rejects a damaged backup and one of a newer schema, and leaves the data unchanged', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  const untouched = bytesOf(dataDir)
  const bad = temp.join('bad.backup')
  const bytes = readFileSync(backup)
  bytes[20_000]! ^= 1
  writeFileSync(bad, bytes)
  expect(await refusal(restoreBackup(restoreRequest(dataDir, bad, { overwrite: true })))).toMatch(
    /was altered/,
  )
  expect(bytesOf(dataDir)).toEqual(untouched)
  const future = temp.join('future')
  cpSync(dataDir, future, { recursive: true })
  const db = new Database(join(future, 'sightglass.db'))
  db.run("INSERT INTO schema_migration VALUES (9999, '9999_future', 0)")
  db.close()
  const futureBackup = await createBackup({
    dataDir: future,
    dir: temp.join('b2'),
    reason: 'manual',
    passphrase: null,
    clock,
  })
  expect(
    await refusal(restoreBackup(restoreRequest(dataDir, futureBackup.path, { overwrite: true }))),
  ).toContain('has schema 9999')
  expect(bytesOf(dataDir)).toEqual(untouched)
})

test('a folder with an interrupted restore opens only after another restore', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  writeFileSync(join(dataDir, 'restore-unfinished'), 'replaced-x\n')
  expect(await refusal(openStore({ folder: dataDir, now: clock.now() }))).toContain('restore')
  await restoreBackup(restoreRequest(dataDir, backup, { overwrite: true }))
  expect(await contentOf(dataDir)).toEqual(restored)
})

test('the key file: in encrypted backups only, passed by hand, or reported as missing', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  const key = readFileSync(join(dataDir, 'secret.key'), 'utf8')
  const missed = await restoreBackup(restoreRequest(temp.join('missed'), backup))
  expect(missed.warnings.join(' ')).toContain('secret.key')
  // With a new key: the restore reported the loss, so the server starts.
  expect(readFileSync(temp.join('missed', 'secret.key'), 'utf8')).not.toBe(key)
  await (await openDataFolder(temp.join('missed'), clock)).close()
  // Deliveries cannot be signed any more, so none is attempted.
  expect(await endpointsOf(temp.join('missed'))).toEqual({
    status: 'paused',
    newest: 'webhook_endpoint.paused',
  })
  const restoration = await restoreBackup(
    restoreRequest(temp.join('given'), backup, { keyFile: join(dataDir, 'secret.key') }),
  )
  expect(restoration.warnings.join(' ')).not.toContain('secret.key')
  expect(readFileSync(temp.join('given', 'secret.key'), 'utf8')).toBe(key)
  expect(await endpointsOf(temp.join('given'))).toEqual({
    status: 'active',
    newest: 'webhook_endpoint.created',
  })
  expect(statSync(temp.join('given', 'secret.key')).mode & 0o777).toBe(0o600)
  writeFileSync(temp.join('other.key'), `${'ab'.repeat(32)}\n`)
  const wrong = restoreBackup(restoreRequest(temp.join('wrong'), backup, { keyFile: temp.join('other.key') }))
  expect(await refusal(wrong)).toContain('not the key')
})

test('an encrypted backup restores with only its passphrase, keys included', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp, 'encrypted')
  const key = readFileSync(join(dataDir, 'secret.key'), 'utf8')
  rmSync(dataDir, { recursive: true })
  expect(await refusal(restoreBackup(restoreRequest(dataDir, backup)))).toContain('passphrase')
  expect(await refusal(restoreBackup(restoreRequest(dataDir, backup, { passphrase: 'wrong' })))).toContain(
    'passphrase',
  )
  const restoration = await restoreBackup(restoreRequest(dataDir, backup, { passphrase: secret }))
  expect(restoration.warnings.join(' ')).not.toContain('secret.key')
  expect(readFileSync(join(dataDir, 'secret.key'), 'utf8')).toBe(key)
  expect(await contentOf(dataDir)).toEqual(restored)
})

test('with a passphrase configured, an unencrypted backup needs explicit permission', async () => {
  using temp = tempDir('restore')
  const { dataDir, backup } = lived(temp)
  const untouched = bytesOf(dataDir)
  const configured = { passphrase: secret, overwrite: true }
  expect(await refusal(restoreBackup(restoreRequest(dataDir, backup, configured)))).toContain(
    'anyone could have',
  )
  expect(await refusal(planRestore(restoreRequest(dataDir, backup, configured)))).toContain(
    'anyone could have',
  )
  expect(bytesOf(dataDir)).toEqual(untouched)
  const restoration = await restoreBackup(
    restoreRequest(dataDir, backup, { ...configured, allowPlain: true }),
  )
  expect(restoration.warnings.join(' ')).toContain('not encrypted')
  expect(await contentOf(dataDir)).toEqual(restored)
})
