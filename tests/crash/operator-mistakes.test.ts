/**
 * What operators do to a data folder by mistake, while events come in. Oracle: every acknowledged event is stored
 * afterwards, or the loss is reported: the server stops acknowledging, and no start hides what is missing.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { prepareFolder, type PreparedFolder } from './prepared-folder.ts'

setDefaultTimeout(90_000)

let temp: TempDir
let prepared: PreparedFolder
beforeAll(async () => {
  temp = tempDir('mistakes')
  prepared = await prepareFolder(temp)
})
afterAll(() => temp.remove())

interface Load {
  acknowledged: Set<string>
  /** Status of the newest response; 0 without one. */
  lastStatus(): number
  stop(): Promise<void>
}

/** Four senders that continue until they are stopped, whatever the response. */
function load(url: string, key: string, prefix: string): Load {
  const acknowledged = new Set<string>()
  let running = true
  let lastStatus = -1
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const sender = async (connection: number) => {
    for (let request = 0; running; request++) {
      const events = Array.from({ length: 10 }, (_, n) => event(`${prefix}-${connection}-${request}-${n}`))
      const init = { method: 'POST', headers, body: JSON.stringify({ events }) }
      const status = await fetch(`${url}/v1/sdk/events`, init).then(
        async (response) => (await response.text(), response.status),
        () => 0,
      )
      lastStatus = status
      if (status === 202) for (const { id } of events) acknowledged.add(id)
      await Bun.sleep(20)
    }
  }
  const senders = [0, 1, 2, 3].map(sender)
  return {
    acknowledged,
    lastStatus: () => lastStatus,
    async stop() {
      running = false
      await Promise.all(senders)
    },
  }
}

/** In pages, because an export would write an audit entry first. */
async function storedIds(url: string, key: string): Promise<Set<string>> {
  const ids = new Set<string>()
  for (let cursor: string | null = ''; cursor !== null;) {
    const path: string = `/v1/traces?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
    const page = (await response.json()) as { events: { id: string }[]; nextCursor: string | null }
    for (const { id } of page.events) ids.add(id)
    cursor = page.nextCursor
  }
  return ids
}

const missing = (acknowledged: Set<string>, stored: Set<string>) =>
  [...acknowledged].filter((id) => !stored.has(id)).length

interface Scene {
  dataDir: string
  appliance: Appliance
  load: Load
}

/** A server with some acknowledged events and running senders. */
async function underLoad(dataDir: string): Promise<Scene> {
  prepared.copyTo(dataDir)
  const appliance = await startAppliance({ dataDir })
  const running = load(appliance.url, prepared.ingest, 'a')
  await until(() => running.acknowledged.size > 300)
  return { dataDir, appliance, load: running }
}

const reasonOf = (appliance: Appliance) =>
  appliance
    .stderr()
    .split('\n')
    .filter((line) => line.includes('store_failed_permanently'))

/** The server must stop acknowledging at once, log it once, and exit with 1. */
async function requireExit(scene: Scene, startedMs: number): Promise<void> {
  await until(() => scene.load.lastStatus() !== 202)
  expect(performance.now() - startedMs).toBeLessThan(5_000) // one second, plus the machine's own delays
  await until(() => scene.load.lastStatus() === 0)
  await scene.load.stop()
  expect((await scene.appliance.stop()).code).toBe(1)
  expect(reasonOf(scene.appliance)).toHaveLength(1)
}

async function requireNoLoss({
  dataDir,
  load: { acknowledged },
}: Pick<Scene, 'dataDir' | 'load'>): Promise<void> {
  const appliance = await startAppliance({ dataDir })
  expect(missing(acknowledged, await storedIds(appliance.url, prepared.secret))).toBe(0)
  const verdict = await appliance.cli('verify', '--json')
  expect((JSON.parse(verdict.stdout) as { ok: boolean }).ok).toBe(true)
  expect((await appliance.stop()).code).toBe(0)
}

test('rm sightglass.lock and a second server: never two at once, and nothing acknowledged is lost', async () => {
  using dir = tempDir('lock')
  const scene = await underLoad(dir.join('data'))
  const startedMs = performance.now()
  rmSync(`${scene.dataDir}/sightglass.lock`)
  const second = cli(['serve', '--listen', '127.0.0.1:0'], { dataDir: scene.dataDir, timeoutMs: 4_000 })
  await requireExit(scene, startedMs)
  const { code, stderr } = await second
  // Rejected, or started after the first had ended: then it ran until it was killed. The removed file named the holder,
  // and the folder's own lock does not.
  if (code !== 137)
    expect(stderr).toMatch(
      new RegExp(`the data folder is in use by (another process|process ${scene.appliance.pid})`),
    )
  await requireNoLoss(scene)
})

test('rejects a second folder with a link to the same database', async () => {
  using dir = tempDir('links')
  const dataDir = dir.join('data')
  await using _appliance = await startAppliance({ dataDir })
  symlinkSync(dataDir, dir.join('other'))
  mkdirSync(dir.join('third'))
  symlinkSync(`${dataDir}/sightglass.db`, dir.join('third/sightglass.db'))
  for (const name of ['other', 'third']) {
    const second = await cli(['serve', '--listen', '127.0.0.1:0'], { dataDir: dir.join(name) })
    expect([name, second.code]).toEqual([name, 1])
    expect(second.stderr).toContain('the data folder is in use by')
  }
})

for (const name of ['sightglass.db-wal', 'sightglass.db-shm'])
  test(`rm ${name}: the server stops, and nothing acknowledged is lost`, async () => {
    using dir = tempDir('files')
    const scene = await underLoad(dir.join('data'))
    rmSync(`${scene.dataDir}/${name}`)
    await requireExit(scene, performance.now())
    await requireNoLoss(scene)
  })

test('a moved folder: the server stops, and every acknowledged event is in it', async () => {
  using dir = tempDir('moved')
  const scene = await underLoad(dir.join('data'))
  renameSync(scene.dataDir, dir.join('elsewhere'))
  mkdirSync(scene.dataDir)
  await requireExit(scene, performance.now())
  // This server writes nothing into the new folder; the socket of the command line is only a name.
  expect(readdirSync(scene.dataDir)).toEqual([])
  await requireNoLoss({ ...scene, dataDir: dir.join('elsewhere') })
})

test('rm -rf of the folder: nothing more is acknowledged, and acknowledged events stay readable', async () => {
  using dir = tempDir('deleted')
  const scene = await underLoad(dir.join('data'))
  const { appliance } = scene
  rmSync(scene.dataDir, { recursive: true, force: true })
  const startedMs = performance.now()
  await until(() => scene.load.lastStatus() === 503)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  await scene.load.stop()
  expect((await fetch(`${appliance.url}/readyz`)).status).toBe(503)
  expect((await fetch(`${appliance.url}/healthz`)).status).toBe(200)
  expect(missing(scene.load.acknowledged, await storedIds(appliance.url, prepared.secret))).toBe(0)
  expect(reasonOf(appliance)).toHaveLength(1)
  expect(reasonOf(appliance)[0]).toContain('only this process can still read')
  expect((await appliance.stop()).code).toBe(1)
})

test('an idle server detects within two seconds that its database was deleted', async () => {
  using dir = tempDir('idle')
  const appliance = await startAppliance({ dataDir: dir.join('data') })
  rmSync(dir.join('data/sightglass.db'))
  await until(() => reasonOf(appliance).length === 1)
  expect((await fetch(`${appliance.url}/readyz`)).status).toBe(503)
  expect((await appliance.stop()).code).toBe(1)
})

let killed: Promise<Scene> | null = null

/** A copy of the folder of a server that was killed under load, so that its log was in use. */
async function crashed(dataDir: string): Promise<Pick<Scene, 'dataDir' | 'load'>> {
  killed ??= (async () => {
    const scene = await underLoad(temp.join('killed'))
    await scene.appliance.kill()
    await scene.load.stop()
    expect(existsSync(`${scene.dataDir}/sightglass.db-wal`)).toBe(true)
    return scene
  })()
  const scene = await killed
  const socket = join(scene.dataDir, 'control.sock')
  cpSync(scene.dataDir, dataDir, { recursive: true, filter: (path) => path !== socket })
  linkSync(socket, join(dataDir, 'control.sock')) // a socket cannot be copied
  return { dataDir, load: scene.load }
}

const serve = ['serve', '--listen', '127.0.0.1:0']
/** A verb opens the folder with the same function as the server: tested once for each kind of loss. */
const serveAndVerb = [serve, ['org', 'create', '--name', 'B']]

async function requireRefusal(dataDir: string, text: string, verbs = [serve]): Promise<void> {
  const namesBefore = readdirSync(dataDir).toSorted()
  for (const verb of verbs) {
    const refused = await cli(verb, { dataDir })
    expect([verb[0], refused.code, refused.stdout]).toEqual([verb[0] ?? '', 1, ''])
    expect(refused.stderr).toContain(text)
    expect(refused.stderr).toContain('sightglass accept-loss')
  }
  expect(readdirSync(dataDir).toSorted()).toEqual(namesBefore)
}

/** Accepting is recorded in the audit trail; the server then starts and the data is intact. */
async function acceptLoss(dataDir: string): Promise<void> {
  const accepted = await cli(['accept-loss', '--yes'], { dataDir })
  expect([accepted.stderr, accepted.code]).toEqual(['', 0])
  await using appliance = await startAppliance({ dataDir })
  const [trail, verdict] = await Promise.all([
    appliance.cli('export', 'audit', '--org', 'org_system'),
    appliance.cli('verify'),
  ])
  expect(trail.stdout).toContain('data.loss_accepted')
  expect(verdict.stdout).toContain('Everything is intact.')
}

const logMistakes: { [name: string]: (wal: string) => void } = {
  'the log removed': (wal) => rmSync(wal),
  'the log and its shared memory removed': (wal) => {
    rmSync(wal)
    rmSync(wal.replace(/-wal$/, '-shm'))
  },
  'the log emptied': (wal) => truncateSync(wal, 0),
  'the log cut short': (wal) => truncateSync(wal, 40_000),
}
for (const [name, mistake] of Object.entries(logMistakes))
  test(`after a crash, ${name}: no start hides it until the loss is accepted`, async () => {
    using dir = tempDir('log')
    const { dataDir } = await crashed(dir.join('data'))
    mistake(`${dataDir}/sightglass.db-wal`)
    await requireRefusal(dataDir, 'sightglass.db-wal', name === 'the log removed' ? serveAndVerb : [serve])
    await acceptLoss(dataDir)
  })

test('accept-loss requires --yes and a folder that is not in use', async () => {
  using dir = tempDir('accept')
  const { dataDir } = await crashed(dir.join('data'))
  rmSync(`${dataDir}/sightglass.db-wal`)
  const questionExit = await cli(['accept-loss'], { dataDir })
  expect([questionExit.code, questionExit.stdout]).toEqual([1, ''])
  expect(questionExit.stderr).toContain('--yes')
  await requireRefusal(dataDir, 'sightglass.db-wal')
  expect((await cli(['accept-loss', '--yes'], { dataDir })).code).toBe(0)
  await using appliance = await startAppliance({ dataDir })
  expect((await appliance.cli('accept-loss')).stderr).toContain('in use by process')
})

test('stale locks and logs after kill -9 never block a start', async () => {
  using dir = tempDir('stale')
  const scene = await crashed(dir.join('data'))
  await requireNoLoss(scene)
})

test('rejects an older copy of the database beside newer audit heads', async () => {
  using dir = tempDir('older')
  const dataDir = dir.join('data')
  prepared.copyTo(dataDir)
  const copy = await Bun.file(`${dataDir}/sightglass.db`).bytes()
  const orgExit = await cli(['org', 'create', '--name', 'A'], { dataDir })
  expect(orgExit.code).toBe(0)
  writeFileSync(`${dataDir}/sightglass.db`, copy)
  await requireRefusal(dataDir, 'audit-heads', serveAndVerb)
  await acceptLoss(dataDir)
})

test('rejects a deleted database and an emptied one', async () => {
  using dir = tempDir('gone')
  const dataDir = dir.join('data')
  prepared.copyTo(dataDir)
  truncateSync(`${dataDir}/sightglass.db`, 0)
  await requireRefusal(dataDir, 'sightglass.db is missing or empty')
  rmSync(`${dataDir}/sightglass.db`)
  await requireRefusal(dataDir, 'sightglass.db is missing or empty', serveAndVerb)
  await acceptLoss(dataDir)
})

test('rejects a lost secret.key while secrets are encrypted with it', async () => {
  using dir = tempDir('key')
  const dataDir = dir.join('data')
  const key = `${dataDir}/secret.key`
  prepared.copyTo(dataDir)
  rmSync(key)
  const second = await startAppliance({ dataDir }) // nothing is encrypted yet, so a new key loses nothing
  expect((await second.cli('webhook', 'secret', '--org', 'default')).code).toBe(0)
  await second.stop()
  renameSync(key, dir.join('key'))
  await requireRefusal(dataDir, 'secret.key is missing', serveAndVerb)
  renameSync(dir.join('key'), key)
  await (await startAppliance({ dataDir })).stop()
  rmSync(key)
  await acceptLoss(dataDir)
  expect(existsSync(key)).toBe(true)
})
