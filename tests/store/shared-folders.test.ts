/** An appliance touches and judges only its own backups in a folder that other appliances and people use too. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import {
  listBackups,
  makePartial,
  ownBackupPath,
  pruneBackups,
  readLastRun,
  removeLeftovers,
  sortBackups,
  writeLastRun,
} from '../../server/operations/backup/backup-folder.ts'
import { createBackup, type MadeBackup } from '../../server/operations/backup/create.ts'
import { manifestBytes, readManifest } from '../../server/operations/backup/manifest.ts'
import { readOwner, requireOwner, type BackupOwner } from '../../server/operations/backup/owner.ts'
import { restoreBackup } from '../../server/operations/backup/restore.ts'
import { checkBackups } from '../../server/operations/doctor/folder-checks.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { applianceOrgId } from '../../db/contract/audit.ts'
import { runs } from '../support/runs.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)

const temp = tempDir('shared-folder')
let now = Date.UTC(2026, 5, 1, 3, 17)
const clock = { now: () => (now += 1_000) }

/** Data folders of two appliances, and one that was restored from a backup of the first. */
const appliances = ['north', 'south', 'clone'] as const
type Appliance = (typeof appliances)[number]
const stores: { [name in Appliance]?: MadeBackup[] } = {}
const stock = temp.join('stock')

const dataDirOf = (name: Appliance): string => temp.join(name)
const ownerIn = (dir: string, name: Appliance): BackupOwner => readOwner({ dataDir: dataDirOf(name), dir })

async function backUp(name: Appliance, dir: string, reason: 'scheduled' | 'manual' = 'scheduled') {
  return createBackup({ dataDir: dataDirOf(name), dir, reason, passphrase: null, clock })
}

/** As the server does after each backup: the chains of two copies of a database differ from then on. */
async function recordSomething(name: Appliance): Promise<void> {
  const store = await openDataFolder(dataDirOf(name), clock)
  const act = { action: 'backup.created', target: name, metadata: { name, at: now } }
  await store.audit.append(auditEntry({ orgId: applianceOrgId, actor: 'system' }, act, clock.now()))
  await store.close()
}

beforeAll(async () => {
  for (const name of ['north', 'south'] as const) await recordSomething(name)
  stores.north = [await backUp('north', stock)]
  const options = { keyFile: null, passphrase: null, overwrite: false, allowPlain: false, clock }
  await restoreBackup({ ...options, dataDir: dataDirOf('clone'), path: stores.north[0]!.path })
  for (const name of appliances) {
    await recordSomething(name)
    stores[name] = [...(stores[name] ?? []), await backUp(name, stock), await backUp(name, stock)]
  }
}, 120_000)
afterAll(() => temp.remove())

/** A backup as an earlier release wrote it: without the id of its appliance. */
async function legacyCopy(backup: MadeBackup, path: string): Promise<void> {
  copyFileSync(backup.path, path)
  const { applianceId: _, ...manifest } = await readManifest(path)
  truncateSync(path, manifest.bodyBytes)
  writeFileSync(path, manifestBytes(manifest), { flag: 'a' })
  const proof = JSON.parse(readFileSync(`${backup.path}.proof.json`, 'utf8')) as { applianceId?: string }
  delete proof.applianceId
  writeFileSync(`${path}.proof.json`, JSON.stringify(proof))
}

/** Everything below a folder: its kind and its bytes, without following links. */
function contentsOf(folder: string, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const path = join(folder, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return [`${name} is gone`]
    if (stats.isSymbolicLink()) return [`${name} links to ${readlinkSync(path)}`]
    if (stats.isDirectory())
      return [`${name}/`, ...contentsOf(path, readdirSync(path)).map((line) => `${name}/${line}`)]
    if (!stats.isFile()) return [`${name} is special`]
    return [`${name} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`]
  })
}

interface Stranger {
  kind:
    | 'backup'
    | 'legacy'
    | 'damaged'
    | 'text'
    | 'folder'
    | 'link'
    | 'pipe'
    | 'partial'
    | 'last run'
    | 'own legacy'
  from: 'south' | 'clone'
  number: number
}

/** Puts something into the folder that is not north's. Returns its names. */
async function place(dir: string, { kind, from, number }: Stranger, index: number): Promise<string[]> {
  const backup = stores[from]![number % stores[from]!.length]!
  const name = `sightglass-2026-05-0${(index % 9) + 1}T031700Z-scheduled-${index}.backup`
  const path = join(dir, name)
  if (kind === 'backup' || kind === 'damaged') {
    copyFileSync(backup.path, path)
    copyFileSync(`${backup.path}.proof.json`, `${path}.proof.json`)
    if (kind === 'damaged') truncateSync(path, 4_096)
    return [name, `${name}.proof.json`]
  }
  if (kind === 'legacy') {
    await legacyCopy(backup, path)
    return [name, `${name}.proof.json`]
  }
  if (kind === 'partial') {
    const partial = `.partial-${name}`
    mkdirSync(join(dir, partial))
    if (number % 2 === 0) writeFileSync(join(dir, partial, 'made-by'), 'ab'.repeat(16))
    writeFileSync(join(dir, partial, 'sightglass.db'), 'a copy in progress')
    return [partial]
  }
  if (kind === 'last run') {
    const lastRun = number % 2 === 0 ? 'last-run.json' : `last-run-${'cd'.repeat(16)}.json`
    writeFileSync(join(dir, lastRun), JSON.stringify({ at: '2999-01-01', ok: false, message: 'not mine' }))
    return [lastRun]
  }
  if (kind === 'folder') mkdirSync(path)
  else if (kind === 'link') symlinkSync(number % 2 === 0 ? backup.path : '/nowhere', path)
  else if (kind === 'pipe') expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0)
  else writeFileSync(path, 'holiday pictures')
  return [name]
}

const kinds = [
  'backup',
  'legacy',
  'damaged',
  'text',
  'folder',
  'link',
  'pipe',
  'partial',
  'last run',
] as const
const strangers = fc.array(
  fc.record({
    kind: fc.constantFrom(...kinds),
    from: fc.constantFrom('south' as const, 'clone' as const),
    number: fc.nat(9),
  }),
  { minLength: 1, maxLength: 8 },
)

test('every job on a shared folder leaves what others put there as it is, and counts none of it', async () => {
  let round = 0
  await fc.assert(
    fc.asyncProperty(strangers, fc.integer({ min: 0, max: 2 }), async (placed, keep) => {
      const dir = temp.join(`round-${round++}`)
      mkdirSync(dir)
      const names: string[] = []
      for (const [index, stranger] of placed.entries()) names.push(...(await place(dir, stranger, index)))
      const foreign = [...new Set(names)]
      const contentsBefore = contentsOf(dir, foreign)
      const owner = requireOwner({ dataDir: dataDirOf('north'), dir })
      const ownNames = stores.north!.map(({ path, name }) => {
        copyFileSync(path, join(dir, name))
        copyFileSync(`${path}.proof.json`, join(dir, `${name}.proof.json`))
        return name
      })
      const lists = async () => (await listBackups(dir, owner)).map(({ name }) => name)

      expect((await lists()).toSorted()).toEqual(ownNames.toSorted())
      expect(readLastRun(dir, owner)).toBeNull()
      for (const name of foreign.filter((backupName) => backupName.endsWith('.backup')))
        expect(await ownBackupPath(dir, name, owner).catch(String)).toContain('No backup has this name')
      const check = await checkBackups(dir, now, owner)
      expect([check.status, check.detail]).toEqual(['ok', expect.stringContaining(ownNames.at(-1)!)])
      removeLeftovers(dir, owner)
      const pruned = await pruneBackups(dir, keep, ownNames.at(-1)!, owner)
      expect(pruned).toEqual(ownNames.slice(0, ownNames.length - Math.max(1, keep)).toReversed())
      writeLastRun(dir, { at: '2026-06-01', ok: true, name: null, message: '' }, owner)
      expect(contentsOf(dir, foreign)).toEqual(contentsBefore)
      rmSync(dir, { recursive: true })
    }),
    // A case that hangs fails with its seed before the test's own limit ends it without a word.
    { numRuns: runs(30), interruptAfterTimeLimit: 90_000, markInterruptAsFailure: true },
  )
})

/** A named pipe into which another process writes the text once somebody opens it. */
function pipeWith(path: string, text: string): { end(): void } {
  expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0)
  const writer = Bun.spawn(['sh', '-c', 'printf %s "$1" > "$0"', path, text], { stderr: 'ignore' })
  return { end: () => writer.kill('SIGKILL') }
}

test('a named pipe in place of a small file is not opened: it would stop the server or lie about its owner', async () => {
  const dir = temp.join('pipes')
  mkdirSync(dir)
  const owner = requireOwner({ dataDir: dataDirOf('north'), dir })
  writeFileSync(join(dir, 'damaged.backup'), 'holiday pictures')
  mkdirSync(join(dir, '.partial-other'))
  const facts = { at: '2026-06-01', ok: true, name: null, message: '', applianceId: owner.applianceId }
  const pipes = [
    pipeWith(join(dir, 'damaged.backup.proof.json'), JSON.stringify(facts)),
    pipeWith(join(dir, '.partial-other', 'made-by'), owner.applianceId),
    pipeWith(join(dir, `last-run-${owner.applianceId}.json`), JSON.stringify(facts)),
  ]
  const lists = await listBackups(dir, owner)
  const lastRun = readLastRun(dir, owner)
  removeLeftovers(dir, owner)
  for (const pipe of pipes) pipe.end()
  expect(lists).toEqual([])
  expect(lastRun).toBeNull()
  expect(readdirSync(dir)).toContain('.partial-other')
})

test('a backup of an earlier release is matched by its audit chain, and one of a copy is not', async () => {
  const dir = temp.join('legacy')
  mkdirSync(dir)
  await legacyCopy(stores.north![1]!, join(dir, 'own.backup'))
  await legacyCopy(stores.clone![0]!, join(dir, 'of-a-copy.backup'))
  await legacyCopy(stores.south![0]!, join(dir, 'of-another.backup'))
  const names = async (appliance: Appliance) => {
    const { own: ownBackups, others: otherCount } = await sortBackups(dir, ownerIn(dir, appliance))
    return [ownBackups.map(({ name }) => name), otherCount]
  }
  expect(await names('north')).toEqual([['own.backup'], 2])
  expect(await names('clone')).toEqual([['of-a-copy.backup'], 2])
  expect(await names('south')).toEqual([['of-another.backup'], 2])
  // Of the past that both share: the copy does not claim what the original made.
  await legacyCopy(stores.north![0]!, join(dir, 'shared-past.backup'))
  expect((await names('clone'))[1]).toBe(3)
  const detail = (await checkBackups(dir, now, ownerIn(dir, 'north'))).detail
  expect(detail).toContain('2 other backups in the folder')
})

test('the default folder inside of the data folder needs no id', async () => {
  const dataDir = temp.join('upgraded')
  cpSync(dataDirOf('south'), dataDir, { recursive: true })
  const dir = join(dataDir, 'backups')
  mkdirSync(dir)
  await legacyCopy(stores.north![0]!, join(dir, 'of-an-earlier-release.backup'))
  copyFileSync(stores.north![0]!.path, join(dir, 'of-another-appliance.backup'))
  const { own: ownBackups, others: otherCount } = await sortBackups(dir, readOwner({ dataDir, dir }))
  expect([ownBackups.map(({ name }) => name), otherCount]).toEqual([['of-an-earlier-release.backup'], 1])
})

test('two appliances back up to one folder at the same second', async () => {
  const dir = temp.join('same-second')
  const frozen = { now: () => Date.UTC(2026, 5, 2) }
  const make = (name: Appliance) => {
    const options = { dataDir: dataDirOf(name), dir, reason: 'scheduled', passphrase: null } as const
    return createBackup({ ...options, clock: frozen })
  }
  // In processes of their own they overlap at any point: here the other one holds the name already.
  mkdirSync(dir)
  const partial = makePartial(dir, 'sightglass-2026-06-02T000000Z-scheduled.backup', ownerIn(dir, 'south'))
  const north = await make('north')
  await partial.remove()
  const south = await make('south')
  const names = [south.name, north.name]
  expect(names).toEqual([
    'sightglass-2026-06-02T000000Z-scheduled.backup',
    'sightglass-2026-06-02T000000Z-scheduled-2.backup',
  ])
  for (const [name, backup] of [
    ['north', north],
    ['south', south],
  ] as const)
    expect((await listBackups(dir, ownerIn(dir, name))).map((view) => view.name)).toEqual([backup.name])
})

test('the leftovers of this appliance are removed, those of another stay', async () => {
  const dir = temp.join('leftovers')
  mkdirSync(dir)
  const north = requireOwner({ dataDir: dataDirOf('north'), dir })
  const south = requireOwner({ dataDir: dataDirOf('south'), dir })
  const id = (owner: BackupOwner) =>
    writeFileSync(join(dir, `.partial-${owner.applianceId}`, 'made-by'), owner.applianceId!)
  for (const owner of [north, south]) {
    mkdirSync(join(dir, `.partial-${owner.applianceId}`))
    id(owner)
  }
  removeLeftovers(dir, north)
  expect(readdirSync(dir)).toEqual([`.partial-${south.applianceId}`])
})
