/** Backups and the doctor on the dashboard's API: for operators alone, every act in the audit trail, schedule too. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BackupsJson } from '../../server/operations/backup/backups.ts'
import type { Diagnosis } from '../../server/operations/doctor/check.ts'
import { makeBatch, makeEvent } from '../store/make.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(40_000)

let server: TestServer
let operator: Person
let owner: Person

beforeAll(async () => {
  server = await testServer()
  operator = await person(server, server.org, 'owner', { operator: true })
  owner = await person(server, server.org, 'owner')
  await server.store.events.append(makeBatch(server.org.id, [makeEvent('a'), makeEvent('b')]))
})
afterAll(() => server[Symbol.asyncDispose]())

async function list(): Promise<BackupsJson> {
  const answer = await operator.call('/api/backups')
  expect(answer.status).toBe(200)
  return (await answer.json()) as BackupsJson
}

async function settled(until: (state: BackupsJson) => boolean): Promise<BackupsJson> {
  for (const deadlineMs = performance.now() + 20_000; ; await Bun.sleep(50)) {
    const state = await list()
    if (until(state)) return state
    if (performance.now() > deadlineMs) throw new Error(`still ${JSON.stringify(state)}`)
  }
}

/** Fails when an answer says that the backup has ended and does not list it. */
async function makeOne(): Promise<string> {
  expect((await operator.post('/api/backups')).status).toBe(202)
  const { backups, lastRun } = await settled(({ running }) => running === null)
  expect(lastRun).toMatchObject({ ok: true, name: backups[0]!.name })
  return backups[0]!.name
}

async function trail(): Promise<string[]> {
  const { entries } = await server.store.audit.list({ orgId: 'org_system', limit: 200, beforeSeq: null })
  return entries.map(({ action, actor, target }) => `${action} ${actor} ${target}`)
}

test('only operators can use backups; owners of an organization cannot', async () => {
  const name = await makeOne()
  const paths: [string, string][] = [
    ['GET', '/api/backups'],
    ['POST', '/api/backups'],
    ['POST', `/api/backups/${name}/verify`],
    ['DELETE', `/api/backups/${name}`],
    ['GET', `/api/backups/${name}/file`],
    ['GET', '/api/doctor'],
  ]
  for (const [method, path] of paths) {
    expect([path, (await server.call(path, { method })).status]).toEqual([path, 401])
    expect([path, (await owner.call(path, { method })).status]).toEqual([path, 403])
  }
  expect((await list()).backups.map((backup) => backup.name)).toContain(name)
})

test('a backup is created, listed, verified, downloaded and deleted, and each action is audited', async () => {
  const name = await makeOne()
  const createdBackup = (await list()).backups.find((backup) => backup.name === name)!
  expect(createdBackup).toMatchObject({
    events: 2,
    encrypted: false,
    reason: 'manual',
    problem: null,
    checked: null,
  })
  expect(Object.keys(createdBackup)).not.toContain('path')
  expect((await operator.post(`/api/backups/${name}/verify`)).status).toBe(202)
  const { backups } = await settled(({ checking }) => checking === null)
  expect(backups.find((backup) => backup.name === name)!.checked).toMatchObject({ ok: true, problems: [] })
  const download = await operator.call(`/api/backups/${name}/file`)
  expect(download.headers.get('content-disposition')).toBe(`attachment; filename="${name}"`)
  const bytes = await download.bytes()
  expect(bytes.length).toBe(createdBackup.bytes)
  expect(new Bun.CryptoHasher('sha256').update(bytes).digest('hex')).toBe(createdBackup.sha256!)
  expect((await operator.call(`/api/backups/${name}`, { method: 'DELETE' })).status).toBe(200)
  expect((await operator.call(`/api/backups/${name}`, { method: 'DELETE' })).status).toBe(404)
  const acts = ['backup.deleted', 'backup.downloaded', 'backup.created']
  expect((await trail()).slice(0, 3)).toEqual(acts.map((act) => `${act} user:${operator.id} ${name}`))
})

test('a second backup at the same time is refused', async () => {
  const answers = await Promise.all([operator.post('/api/backups'), operator.post('/api/backups')])
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
  await settled(({ running }) => running === null)
})

test('a backup name reaches no other file', async () => {
  for (const name of ['..%2Fsightglass.db', '%2e%2e%2fsecret.key', 'absent.backup', 'last-run.json'])
    for (const [method, end] of [
      ['GET', '/file'],
      ['DELETE', ''],
      ['POST', '/verify'],
    ] as const)
      expect([name, (await operator.call(`/api/backups/${name}${end}`, { method })).status]).toEqual([
        name,
        404,
      ])
})

test('a damaged backup is shown as damaged, also by the doctor', async () => {
  const name = await makeOne()
  const path = join(server.dataDir, 'backups', name)
  const bytes = await Bun.file(path).bytes()
  bytes[5_000]! ^= 4
  writeFileSync(path, bytes)
  await operator.post(`/api/backups/${name}/verify`)
  const { backups } = await settled(({ checking }) => checking === null)
  expect(backups.find((backup) => backup.name === name)!.checked).toMatchObject({ ok: false })
  writeFileSync(path, bytes.subarray(0, -1))
  const doctor = (await (await operator.call('/api/doctor')).json()) as Diagnosis
  expect(doctor.ok).toBe(false)
  expect(doctor.checks.find(({ id }) => id === 'backup')).toMatchObject({ status: 'failure' })
  expect(doctor.checks.find(({ id }) => id === 'server-store')).toMatchObject({ status: 'ok' })
  await operator.call(`/api/backups/${name}`, { method: 'DELETE' })
})

test('the schedule creates backups, deletes the oldest and leaves other files alone', async () => {
  await using scheduled = await testServer({
    backup: {
      dir: join(server.dataDir, 'scheduled'),
      cron: '* * * * * *',
      keep: 2,
      passphrase: 'for the night',
    },
  })
  const dir = join(server.dataDir, 'scheduled')
  const names = () =>
    readdirSync(dir)
      .filter((name) => name.endsWith('-scheduled.backup'))
      .sort()
  await until(() => names().length >= 2)
  const [first] = names()
  await until(() => !names().includes(first!))
  expect(names().length).toBeLessThanOrEqual(3) // for a moment, until the surplus one goes
  const operatorPerson = await person(scheduled, scheduled.org, 'owner', { operator: true })
  const state = (await (await operatorPerson.call('/api/backups')).json()) as BackupsJson
  expect(state.schedule).toMatchObject({ cron: '* * * * * *', keep: 2, encrypted: true })
  expect(state.backups[0]).toMatchObject({ encrypted: true, reason: 'scheduled' })
  expect(JSON.stringify(state)).not.toContain('for the night')
})

test('a failed backup is listed as failed and leaves no partial file', async () => {
  const dir = join(server.dataDir, 'a-file')
  writeFileSync(dir, 'in the way')
  await using broken = await testServer({ backup: { dir, cron: null, keep: 2, passphrase: null } })
  const operatorPerson = await person(broken, broken.org, 'owner', { operator: true })
  expect((await operatorPerson.post('/api/backups')).status).toBe(202)
  let state: BackupsJson
  do state = (await (await operatorPerson.call('/api/backups')).json()) as BackupsJson
  while (state.running !== null)
  expect(state).toMatchObject({ backups: [], lastRun: { ok: false, name: null } })
})

async function until(holds: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 20_000
  for (;;) {
    try {
      if (holds()) return
    } catch {
      // the folder may not be there yet
    }
    if (performance.now() > deadlineMs) throw new Error('it did not come true in 20 s')
    await Bun.sleep(50)
  }
}
