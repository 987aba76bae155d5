/** Backups: their contents, detection of every damage, and the backup folder. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { openDatabaseAdmin } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { makeAudit, makeBatch, makeEvent } from './make.ts'
import { tempDir } from '../support/temp-dir.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { AppError } from '../../server/errors.ts'
import { openSecretBox } from '../../server/system/encryption.ts'
import { backupPath, listBackups, pruneBackups } from '../../server/operations/backup/backup-folder.ts'
import { checkBackup } from '../../server/operations/backup/check.ts'
import { createBackup, type MadeBackup } from '../../server/operations/backup/create.ts'
import { decrypted, deriveKey, encrypted, keyOf, piecesOf } from '../../server/operations/backup/body.ts'
import { manifestBytes, readManifest, type BackupReason } from '../../server/operations/backup/manifest.ts'

setDefaultTimeout(90_000)
const temp = tempDir('backup')
const dataDir = temp.join('data')
const dir = temp.join('backups')
let now = Date.UTC(2026, 5, 1, 3, 17)
const clock = { now: () => (now += 1_000) }
let store: Store
let plain: MadeBackup
let sealed: MadeBackup

const make = (passphrase: string | null = null, reason: BackupReason = 'manual') =>
  createBackup({ dataDir, dir, reason, passphrase, clock })

beforeAll(async () => {
  store = await openDataFolder(dataDir, clock)
  openSecretBox(dataDir)
  const events = Array.from({ length: 500 }, (_, index) => makeEvent(`evt_${index}`))
  await store.events.append(makeBatch((await store.orgs.find('default'))!.id, events))
  plain = await make()
  sealed = await make('a long passphrase')
}, 90_000)
afterAll(async () => {
  await store.close()
  temp.remove()
})

test('a backup reports its contents and is verified', async () => {
  expect(plain).toMatchObject({
    events: 500,
    manifest: { schema: expect.any(Number), encryption: null, orgs: 1 },
  })
  expect(plain.name).toMatch(/^sightglass-2026-06-01T0317\d\dZ-manual\.backup$/)
  expect(await checkBackup(plain.path, null)).toMatchObject({
    ok: true,
    opened: true,
    sha256: plain.sha256,
    bytes: plain.bytes,
  })
  expect(new Bun.CryptoHasher('sha256').update(readFileSync(plain.path)).digest('hex')).toBe(plain.sha256)
  expect(statSync(plain.path).mode & 0o777).toBe(0o600)
  expect(readdirSync(dir).filter((name) => name.startsWith('.partial'))).toEqual([])
})

test('one passphrase opens backups of every spelling, also those of earlier releases', async () => {
  const passphrase = 'Cr\u00e8me br\u00fbl\u00e9e f\u00fcr 2'
  for (const spelling of [
    passphrase,
    `${passphrase}\n`,
    `\uFEFF${passphrase}\r\n`,
    passphrase.normalize('NFD'),
  ]) {
    const { path } = await make(spelling)
    expect(await checkBackup(path, passphrase)).toMatchObject({ ok: true, opened: true })
    rmSync(path)
  }
  for (const earlier of [`${passphrase}\n`, `${passphrase}\r\n`, `\uFEFF${passphrase}`]) {
    const { path } = await make(passphrase)
    await encryptAgain(path, passphrase, earlier)
    for (const candidate of [passphrase, earlier, passphrase.normalize('NFD')])
      expect(await checkBackup(path, candidate)).toMatchObject({ ok: true, opened: true })
    expect(await checkBackup(path, 'another one')).toMatchObject({ ok: false, opened: false })
    rmSync(path)
  }
})

/** As earlier releases did, whose key was that of the passphrase with its line end. */
async function encryptAgain(path: string, passphrase: string, earlier: string): Promise<void> {
  const manifest = await readManifest(path)
  const encryption = manifest.encryption!
  const body = piecesOf(path, manifest.bodyBytes)
  const clear = decrypted(body, await keyOf(passphrase, encryption), encryption)
  const pieces: Buffer[] = []
  for await (const piece of encrypted(clear, await deriveKey(earlier, encryption), encryption))
    pieces.push(piece)
  const bytes = Buffer.concat(pieces)
  const bodySha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  writeFileSync(path, Buffer.concat([bytes, manifestBytes({ ...manifest, bodySha256 })]))
}

test('erased events are not counted, before and after the fold', async () => {
  const org = await store.orgs.find('default')
  const orgId = org!.id
  const events = ['a', 'b', 'c'].map((id) => makeEvent(`evt_erased_${id}`, { sessionId: 'sess_erased' }))
  await store.events.append(makeBatch(orgId, [...events, makeEvent('evt_kept')]))
  const audit = makeAudit(orgId, { action: 'events.erased', metadata: {} })
  await store.events.erase({ orgId, sessionIds: ['sess_erased'], subjects: [], audit, cursor: null })
  expect((await openDatabaseAdmin(dataDir).facts()).events).toBe(501)
  await store.close() // folds
  expect((await openDatabaseAdmin(dataDir).facts()).events).toBe(501)
  store = await openDataFolder(dataDir, clock)
  const elsewhere = { dir: temp.join('elsewhere'), reason: 'manual', passphrase: null } as const
  expect((await createBackup({ dataDir, clock, ...elsewhere })).manifest.events).toBe(501)
})

test('an unencrypted backup is a plain SQLite database without the key file', () => {
  const db = new Database(plain.path, { readonly: true })
  expect(db.query('SELECT sum(events) AS n FROM event_block').get()).toEqual({ n: 500 })
  db.close()
  const key = readFileSync(`${dataDir}/secret.key`, 'utf8').trim()
  expect(readFileSync(plain.path).includes(key)).toBe(false)
  expect(plain.manifest.keyId).toMatch(/^[0-9a-f]{8}$/)
})

test('an encrypted backup reveals no content and opens with its passphrase', async () => {
  const bytes = readFileSync(sealed.path)
  expect(bytes.includes('SQLite format 3')).toBe(false)
  expect(bytes.includes('evt_1')).toBe(false)
  expect(await checkBackup(sealed.path, 'a long passphrase')).toMatchObject({ ok: true, opened: true })
  expect(await checkBackup(sealed.path, null)).toMatchObject({ ok: true, opened: false })
  const wrong = await checkBackup(sealed.path, 'another')
  expect(wrong).toMatchObject({ ok: false, opened: false, problems: [expect.stringContaining('passphrase')] })
})

test('a flipped bit anywhere is detected', async () => {
  for (const { path } of [plain, sealed]) {
    const good = readFileSync(path)
    const copy = temp.join('flipped.backup')
    const places = Array.from({ length: 40 }, (_, index) => Math.floor(((index + 0.5) * good.length) / 40))
    for (const position of [0, ...places, good.length - 49, good.length - 20, good.length - 1]) {
      const bad = Buffer.from(good)
      bad[position]! ^= 1 << (position % 8)
      writeFileSync(copy, bad)
      expect([position, await isSound(copy)]).toEqual([position, false])
    }
  }
})

test('rejects a truncated, empty or foreign file with a clear message', async () => {
  const cut = temp.join('cut.backup')
  for (const bytes of [plain.bytes - 1, plain.bytes / 2, 10, 0]) {
    cpSync(plain.path, cut)
    truncateSync(cut, Math.floor(bytes))
    expect(await isSound(cut)).toBe(false)
  }
  writeFileSync(cut, 'not a backup at all, but long enough to have a footer somewhere')
  expect(await isSound(cut)).toBe(false)
  expect(await isSound(temp.join('absent.backup'))).toBe(false)
})

test('the list is newest first, marks damaged backups, and prunes only scheduled ones', async () => {
  const scheduled = [
    await make(null, 'scheduled'),
    await make(null, 'scheduled'),
    await make(null, 'scheduled'),
  ]
  writeFileSync(`${dir}/broken.backup`, 'x')
  const backupsBefore = await listBackups(dir)
  expect(backupsBefore.map(({ name }) => name)).toEqual([
    ...scheduled.map(({ name }) => name).reverse(),
    sealed.name,
    plain.name,
    'broken.backup',
  ])
  expect(backupsBefore.at(-1)).toMatchObject({
    manifest: null,
    problem: expect.stringContaining('not a complete backup'),
  })
  expect(backupsBefore[0]).toMatchObject({ proof: { sha256: scheduled[2]!.sha256 } })
  expect(await pruneBackups(dir, 1, '')).toEqual([scheduled[1]!.name, scheduled[0]!.name])
  expect(existsSync(plain.path)).toBe(true)
  expect(existsSync(`${scheduled[0]!.path}.proof.json`)).toBe(false)
})

test('a name cannot refer to another file', () => {
  writeFileSync(temp.join('outside.backup'), 'x')
  for (const name of [
    '../outside.backup',
    '/etc/passwd',
    '..',
    '',
    '.hidden.backup',
    'absent.backup',
    'last-run.json',
  ])
    expect(() => backupPath(dir, name)).toThrow(AppError)
  expect(backupPath(dir, plain.name)).toBe(plain.path)
})

async function isSound(path: string): Promise<boolean> {
  try {
    return (await checkBackup(path, 'a long passphrase')).ok
  } catch (error) {
    if (error instanceof AppError) return false // one clear sentence, not a fault of ours
    throw error
  }
}
