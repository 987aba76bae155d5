/** Upgrades from every earlier schema: nothing lost, a backup first, all or nothing, newer data rejected. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { openDatabase } from '../../db/sqlite/file/connection.ts'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import type { EventFilter, Store } from '../../db/contract/store.ts'
import { appendAudit } from '../../db/sql/audit/append.ts'
import { migrate, migrations } from '../../db/sqlite/migrations/migrations.ts'
import { checkBackup } from '../../server/operations/backup/check.ts'
import { backUpBeforeUpgrade } from '../../server/operations/backup/create.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { openSecretBox } from '../../server/system/encryption.ts'
import { cli } from '../support/binary.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { contentOf, fixtures, saveFixture, sealedAgent, sealedEvents, type Fixture } from './fixture.ts'
import { isFull } from '../support/runs.ts'
import { openInProcess } from './in-process.ts'
import { makeBatch, makeEvent, noon } from './make.ts'
import { countAll } from './subject.ts'

setDefaultTimeout(60_000)

const clock = { now: () => noon }
const { newestSchema } = openDatabaseAdmin('')
let temp: TempDir
beforeAll(() => void (temp = tempDir('upgrade')))
afterAll(() => temp.remove())

const unpacked = (fixture: Fixture, name: string): string => {
  const folder = temp.join(`${fixture.name}-${name}`)
  fixture.unpack(folder)
  openSecretBox(folder) // the fixtures have encrypted secrets, and no start works without their key file
  return folder
}
const backupOf = (folder: string) => ({ dir: join(folder, 'backups'), passphrase: null })

const upgrades = new Map<string, Promise<string>>()

function migrateFolder(folder: string): void {
  using db = openDatabase(join(folder, 'sightglass.db'))
  migrate(db, migrations, noon)
}

/** The steps of `openDataFolder` for data of an earlier schema, without the threads of a store. */
async function upgradeInProcess(folder: string): Promise<void> {
  await backUpBeforeUpgrade(folder, clock, backupOf(folder))
  migrateFolder(folder)
}

/** Upgraded by `openDataFolder`: the oldest schema, the sealed segments and the newest fixture. */
const opened = new Set(['schema-0005', 'schema-0012-sealed', 'schema-0012'])

/** The backup of a schema holds any events, so that of the small fixture is enough. */
const isSealed = ({ name }: Fixture): boolean => name.endsWith('-sealed')
const isBackedUp = (fixture: Fixture): boolean => !isSealed(fixture) || opened.has(fixture.name)

/** The folder of a fixture after its upgrade, which runs once for all tests. They change only copies of it. */
function upgraded(fixture: Fixture): Promise<string> {
  const upgrade = async () => {
    const folder = unpacked(fixture, 'upgraded')
    if (opened.has(fixture.name))
      await (await openDataFolder(folder, clock, { backup: backupOf(folder) })).close()
    else if (isBackedUp(fixture)) await upgradeInProcess(folder)
    else migrateFolder(folder)
    return folder
  }
  const upgradedPath = upgrades.get(fixture.name) ?? upgrade()
  upgrades.set(fixture.name, upgradedPath)
  return upgradedPath
}

async function copyOf(fixtureName: string, name: string): Promise<string> {
  const fixture = fixtures().find((candidate) => candidate.name === fixtureName)
  const folder = temp.join(`${fixtureName}-${name}`)
  cpSync(await upgraded(fixture!), folder, { recursive: true })
  return folder
}

async function expectContent(store: Store, { content }: Fixture): Promise<void> {
  expect(await contentOf(store)).toMatchObject({ ...content })
  for (const orgId of content.orgs) {
    const { rows } = await store.events.classVendor({ orgId, sinceMs: 0, untilMs: null })
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(content.metrics[orgId]!)
  }
}

/**
 * Of fixtures with sealed segments an everyday run upgrades the oldest, the newest and every third of the others, and
 * verifies one of these: 132,000 events take a second each. Every schema has a small fixture too.
 */
const sealed = fixtures().filter(isSealed)
const third = Math.floor(Math.random() * 3)
const ends = [sealed[0], sealed.at(-1)].map((fixture) => fixture?.name)
const middle = sealed.filter(({ name }, index) => !ends.includes(name) && index % 3 === third)
const verified = [...ends, middle[Math.floor(Math.random() * middle.length)]?.name]
const isVerified = (fixture: Fixture): boolean =>
  isFull || !isSealed(fixture) || verified.includes(fixture.name)
const upgradedToday = fixtures().filter(
  (fixture) => isFull || !isSealed(fixture) || ends.includes(fixture.name) || middle.includes(fixture),
)

/** The same without threads; the folder also knows its ids and takes more events. */
async function expectWholeInProcess(folder: string, fixture: Fixture): Promise<void> {
  const { store, migrate, append } = await openInProcess(folder)
  await expectContent(store, fixture)
  expect((await store.call('audit.verify', [])).faults).toEqual([])
  expect(migrate()).toEqual([])
  const [orgId = ''] = fixture.content.orgs
  const again = append(makeBatch(orgId, [makeEvent('evt_1007'), makeEvent('evt_new')]))
  expect(again).toMatchObject({ accepted: 1, deduped: 1 })
  if (isVerified(fixture)) expect((await store.call('events.verify')).faults).toEqual([])
  await store.close()
}

async function expectWhole(folder: string, fixture: Fixture): Promise<void> {
  const { name } = fixture
  const store = await openDataFolder(folder, clock, { backup: backupOf(folder) })
  await expectContent(store, fixture)
  await store.close()
  expect((await openDatabaseAdmin(folder).verifyAudit()).faults).toEqual([])
  // The sealed events are verified below, with one more.
  if (name !== 'schema-0012-sealed')
    expect((await openDatabaseAdmin(folder).verifyEvents()).faults).toEqual([])
  expect(await openDatabaseAdmin(folder).schema()).toMatchObject({ version: newestSchema, pending: [] })
}

test('a fixture of any schema can be saved and read back; the newest one is that of this release', async () => {
  const savedFolder = temp.join('saved')
  const schema = await saveFixture(savedFolder, 'everything', 1)
  expect(schema).toBe(newestSchema)
  const [saved] = fixtures(savedFolder)
  expect(saved!.content.events['org_first']!.total).toBe(6_000)
  await expectWhole(unpacked(saved!, 'saved'), saved!)
})

describe.each(upgradedToday.map((fixture) => [fixture.name, fixture] as const))(
  'from %s',
  (_name, fixture) => {
    const { schema } = fixture
    test('all data is kept, a valid backup comes first, and a second run does nothing', async () => {
      const folder = await upgraded(fixture)
      const backups = existsSync(join(folder, 'backups')) ? readdirSync(join(folder, 'backups')) : []
      const upgradeBackups = backups.filter((name) => name.endsWith('-upgrade.backup'))
      expect(upgradeBackups.length).toBe(schema < newestSchema && isBackedUp(fixture) ? 1 : 0)
      for (const name of upgradeBackups) {
        const verdict = await checkBackup(join(folder, 'backups', name), null)
        expect(verdict).toMatchObject({ ok: true, manifest: { schema, reason: 'upgrade' } })
      }
      if (opened.has(fixture.name)) await expectWhole(folder, fixture)
      else await expectWholeInProcess(folder, fixture)
      expect(existsSync(join(folder, 'backups')) ? readdirSync(join(folder, 'backups')) : []).toEqual(backups)
    })
  },
)

const orgId = 'org_sealed'
const allTime = { orgId, sinceMs: 0, untilMs: null }

async function sealedStore(name: string): Promise<{ folder: string; store: Store }> {
  const folder = await copyOf('schema-0012-sealed', name)
  return { folder, store: await openStore({ folder, now: noon }) }
}

/** Ids of the newest matching events, newest first. */
async function idsOf(store: Store, filter: EventFilter, idsMax = sealedEvents): Promise<string[]> {
  const ids: string[] = []
  let position: Parameters<Store['events']['page']>[0]['before'] = null
  do {
    const page: Awaited<ReturnType<Store['events']['page']>> = await store.events.page({
      orgId,
      filter,
      limit: 2_000,
      before: position,
      ceilingSeq: null,
    })
    ids.push(...page.events.map(({ json }) => (JSON.parse(json) as { id: string }).id))
    position = page.next
  } while (position !== null && ids.length < idsMax)
  return ids.slice(0, idsMax)
}

function countBy<K>(values: Iterable<K>): Map<K, number> {
  const counts = new Map<K, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/** Names and purposes of events that schema 12 sealed, against a recount of the fixture. */
async function expectAgents(store: Store): Promise<void> {
  const agents = Array.from({ length: sealedEvents }, (_, number) => sealedAgent(number))
  const rare = agents.flatMap(({ name }, number) => (name === 'Manus-User' ? [`evt_${number}`] : []))
  expect(rare.length).toBe(2) // one of each sealed segment
  expect((await idsOf(store, { names: ['Manus-User'] })).toSorted()).toEqual(rare)
  expect(await idsOf(store, { names: ['GPTBot'], purposes: ['user'] })).toEqual([])
  expect(await idsOf(store, { names: [''] })).toEqual([])
  expect(await countAll(store, orgId, { purposes: ['search'] }, sealedEvents)).toBe(
    agents.filter(({ purpose }) => purpose === 'search').length,
  )
  for (const field of ['name', 'purpose'] as const) {
    const { rows } = await store.events.breakdown({ ...allTime, by: field, stepMs: null })
    expect(new Map(rows.map(({ value, count }) => [value!, count]))).toEqual(
      countBy(agents.map((agent) => agent[field])),
    )
  }
  const { rows } = await store.events.agents(allTime)
  expect(new Map(rows.map(({ count, ...agent }) => [JSON.stringify(agent), count]))).toEqual(
    countBy(
      agents.map(({ name, purpose }) =>
        JSON.stringify({ vendor: { name: 'OpenAI' }, name: { name }, purpose: { name: purpose } }),
      ),
    ),
  )
}

describe('agents and clocks far ahead, in segments that an earlier schema sealed', () => {
  test('names and purposes are found and counted exactly, beside events that come after the upgrade', async () => {
    const { folder, store } = await sealedStore('agents')
    await expectAgents(store)
    const agent = { vendor: 'Manus', name: 'Manus-User', purpose: 'user' }
    await store.events.append(makeBatch(orgId, [makeEvent('fresh', { ...agent, json: '{"id":"fresh"}' })]))
    expect((await idsOf(store, { names: ['Manus-User'] })).toSorted()).toEqual([
      'evt_1000',
      'evt_66536',
      'fresh',
    ])
    await store.close()
    expect((await openDatabaseAdmin(folder).verifyEvents()).faults).toEqual([])
  })

  test('a segment without a field in its index is scanned', async () => {
    const { folder, store } = await sealedStore('unindexed')
    await store.close()
    const db = openDatabase(join(folder, 'sightglass.db'))
    for (const table of ['event_posting', 'event_posting_rest'])
      db.run(`DELETE FROM ${table} WHERE member IN (20, 21)`)
    db.run('UPDATE event_segment SET index_version = 1')
    db.close()
    const again = await openStore({ folder, now: noon })
    await expectAgents(again)
    await again.close()
    expect((await openDatabaseAdmin(folder).verifyEvents()).faults).toEqual([])
  })

  test('an event far ahead of its arrival counts at its arrival: in lists, filters and hours', async () => {
    const { store } = await sealedStore('ahead')
    const received = noon + 1
    const times = Array.from({ length: sealedEvents }, (_, number) => {
      const sentMs = noon + Math.floor(number / 100) * 1_000
      return { id: `evt_${number}`, at: sentMs - received > 300_000 ? received : sentMs, number }
    })
    const newest = times.toSorted((a, b) => b.at - a.at || b.number - a.number).map(({ id }) => id)
    expect(await idsOf(store, {}, 40_000)).toEqual(newest.slice(0, 40_000))
    const untilMs = noon + 1_000
    const idsBefore = new Set(times.filter(({ at: atMs }) => atMs < untilMs).map(({ id }) => id))
    expect(await countAll(store, orgId, { untilMs }, sealedEvents)).toBe(idsBefore.size)
    expect(await idsOf(store, { untilMs }, 6_000)).toEqual(
      newest.filter((id) => idsBefore.has(id)).slice(0, 6_000),
    )
    await store.close()
    const otherCopy = await copyOf('schema-0012', 'hours')
    const filled = await openStore({ folder: otherCopy, now: noon })
    const range = { orgId: 'org_first', sinceMs: 0, untilMs: null }
    const pageQuery = { ...range, filter: {}, limit: 2_000, before: null, ceilingSeq: null }
    const { events } = await filled.events.page(pageQuery)
    expect(events.every(({ occurredAtMs }) => occurredAtMs <= received + 300_000)).toBe(true)
    const hours = Array.from({ length: 6_000 }, (_, number) => {
      const sentMs = noon + number * 1_000 - (number % 7 === 0 ? 3_600_000 : 0)
      return Math.floor((sentMs - received > 300_000 ? received : sentMs) / 3_600_000) * 3_600_000
    })
    const { byHour } = await filled.events.metrics({ ...range, rowsMax: 1 })
    expect(new Map(byHour.map(({ hourStartMs, count }) => [hourStartMs, count]))).toEqual(
      countBy(hours.toSorted()),
    )
    await filled.close()
  })
})

/** A database with only the first migrations and one organization, as a release of that time left it. */
function early(schema: number): string {
  const folder = temp.join(`early-${schema}-${Math.random().toString(36).slice(2)}`)
  mkdirSync(folder)
  const db = openDatabase(join(folder, 'sightglass.db'), { create: true })
  db.run('PRAGMA journal_mode = WAL')
  migrate(db, migrations.slice(0, schema), noon)
  db.run("INSERT INTO org (id, slug, name, created_at_ms) VALUES ('org_early', 'early', 'Early', 1)")
  appendAudit(db, {
    id: 'audit_early',
    orgId: 'org_early',
    actor: 'cli',
    action: 'org.created',
    target: 'org_early',
    metadata: {},
    occurredAtMs: 1,
  })
  db.close()
  return folder
}

/** The definitions of all tables and the organizations. */
function schemaOf(folder: string): unknown {
  const db = openDatabase(join(folder, 'sightglass.db'), { readonly: true })
  const tables = db.query('SELECT type, name, sql FROM sqlite_schema ORDER BY type, name').all()
  const orgs = db.query("SELECT slug FROM org WHERE slug = 'early'").all()
  db.close()
  return { tables, orgs }
}

describe('from every number of migrations', () => {
  test('upgrades to the newest, after a backup', async () => {
    const newest = schemaOf(early(newestSchema))
    const withFixture = new Set(fixtures().map(({ schema }) => schema)) // backed up above, with data
    for (let schema = 1; schema < newestSchema; schema++) {
      const folder = early(schema)
      if (withFixture.has(schema)) migrateFolder(folder)
      else await upgradeInProcess(folder)
      expect([schema, schemaOf(folder)]).toEqual([schema, newest])
      if (withFixture.has(schema)) continue
      expect(readdirSync(join(folder, 'backups')).filter((name) => name.endsWith('.backup')).length).toBe(1)
    }
  })

  test('schema 30 deletes sketches of days, whose form changed, and no other sums', () => {
    const folder = early(29)
    const db = openDatabase(join(folder, 'sightglass.db'))
    for (const member of [5, 33, 34, 36])
      db.query("INSERT INTO rollup_day (org, member, day, sums) VALUES (1, ?, 24, x'00')").run(member)
    db.close()
    migrateFolder(folder)
    using migrated = openDatabase(join(folder, 'sightglass.db'), { readonly: true })
    const members = migrated.query<{ member: number }, []>('SELECT member FROM rollup_day ORDER BY member')
    expect(members.all().map(({ member }) => member)).toEqual([5, 36])
  })

  test('a failed migration leaves the previous schema intact', () => {
    const folder = early(newestSchema)
    const db = openDatabase(join(folder, 'sightglass.db'))
    const broken = [
      ...migrations,
      {
        version: newestSchema + 1,
        name: 'broken',
        sql: 'CREATE TABLE half (x) STRICT; INSERT INTO nowhere VALUES (1)',
      },
    ]
    expect(() => migrate(db, broken, noon)).toThrow()
    expect(db.query("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'half'").get()).toEqual({ n: 0 })
    expect(db.query('SELECT max(version) AS v FROM schema_migration').get()).toEqual({ v: newestSchema })
    db.close()
  })

  test('verbs that need current data say what to do instead of upgrading', async () => {
    const folder = early(newestSchema - 1)
    const schemaBefore = await openDatabaseAdmin(folder).schema()
    const { code, stderr } = await cli(['org', 'list'], { dataDir: folder })
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^sightglass: The data has schema .*migrate up.*\n$/),
    ])
    expect(await openDatabaseAdmin(folder).schema()).toEqual(schemaBefore)
  })

  test('migrate status and up: reported, run once, reported again', async () => {
    const folder = early(2)
    const status = async () => {
      const { code, stdout } = await cli(['migrate', 'status', '--json'], { dataDir: folder })
      return { code, ...(JSON.parse(stdout) as object) }
    }
    expect(await status()).toMatchObject({ code: 0, state: 'pending', schema: 2, newest: newestSchema })
    const up = await cli(['migrate', 'up', '--json'], { dataDir: folder })
    const upgradeResult = JSON.parse(up.stdout) as { from: number; to: number; backup: string }
    expect(upgradeResult).toMatchObject({ from: 2, to: newestSchema })
    expect(await checkBackup(upgradeResult.backup, null)).toMatchObject({ ok: true, manifest: { schema: 2 } })
    expect(await status()).toMatchObject({ code: 0, state: 'current', schema: newestSchema })
    const again = await cli(['migrate', 'up', '--json'], { dataDir: folder })
    expect(JSON.parse(again.stdout)).toEqual({ from: newestSchema, to: newestSchema, backup: null })
  })

  test('after a kill at any moment it has the old or the new schema, and the next run completes', async () => {
    const newest = schemaOf(early(newestSchema))
    for (const afterMs of [20, 80, 140, 200, 260, 320, 400]) {
      const folder = early(1)
      await cli(['migrate', 'up'], { dataDir: folder, timeoutMs: afterMs })
      expect([1, newestSchema]).toContain((await openDatabaseAdmin(folder).schema()).version)
      expect((await cli(['migrate', 'up'], { dataDir: folder })).code).toBe(0)
      expect(schemaOf(folder)).toEqual(newest)
    }
  })

  test('every verb rejects data of a newer release with a remedy, and leaves it unchanged', async () => {
    const folder = early(newestSchema)
    const db = openDatabase(join(folder, 'sightglass.db'))
    db.run(`INSERT INTO schema_migration VALUES (${newestSchema + 1}, 'future', 0)`)
    db.close()
    const bytes = readFileSync(join(folder, 'sightglass.db'))
    for (const verb of [
      ['serve', '--listen', '127.0.0.1:0'],
      ['org', 'list'],
      ['migrate', 'up'],
      ['backup', 'create'],
    ]) {
      const { code, stderr } = await cli(verb, { dataDir: folder })
      expect([verb[0], code]).toEqual([verb[0], 1])
      expect(stderr).toMatch(/schema .*newer/)
    }
    const status = await cli(['migrate', 'status', '--json'], { dataDir: folder })
    expect([status.code, JSON.parse(status.stdout)]).toMatchObject([1, { state: 'newer' }])
    expect(readFileSync(join(folder, 'sightglass.db'))).toEqual(bytes)
  })
})
