/**
 * The clock jumps by an hour, a day and 400 days, ahead and back: nothing is deleted, and every retry waits as before.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../db/contract/store.ts'
import { openSigningKey } from '../../server/audit/signing.ts'
import { listBackups } from '../../server/operations/backup/backup-folder.ts'
import { makeBackups } from '../../server/operations/backup/backups.ts'
import { startClockGuard, testTime, type ClockGuard } from '../../server/system/clock-guard.ts'
import type { Job } from '../../server/system/scheduler.ts'
import { makeIngestCounts } from '../../server/ingest/counts.ts'
import { jobTable } from '../../server/jobs.ts'
import { startLog } from '../../server/log.ts'
import { startWebhooks, type Webhooks } from '../../server/webhooks/start.ts'
import { cli, startAppliance } from '../support/binary.ts'
import { isOnPostgres, openTestFolder } from '../support/engine.ts'
import { testServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAccount, makeAudit, makeBatch, makeEvent, makeOrg, makeSignIn } from '../store/make.ts'
import { countAll } from '../store/subject.ts'

setDefaultTimeout(120_000)

const hour = 3_600_000
const day = 24 * hour
const jumps = [hour, -hour, day, -day, 400 * day, -400 * day]
const start = Date.UTC(2026, 10, 22, 12)
const silent = { info() {}, warn() {}, error() {} }

/** A settable wall clock, and elapsed time. */
function setTime() {
  const time = { wallMs: start, passedMs: 5 * day }
  const source = { now: () => time.wallMs, elapsed: () => time.passedMs }
  const guard = startClockGuard({ time: testTime(source), dataDir: null, log: silent })
  return {
    guard,
    jump(byMs: number) {
      time.wallMs += byMs
      guard.hold()
    },
    pass(ms: number) {
      time.wallMs += ms
      time.passedMs += ms
      guard.hold()
    },
  }
}

/** The jobs of a server that delete by age, each over the real store. */
function deletingJobs(store: Store, dataDir: string, clockGuard: ClockGuard, webhooks: Webhooks): Job[] {
  const { clock } = clockGuard
  const log = startLog({ level: 'error', clock })
  const config = { dir: join(dataDir, 'backups'), cron: '17 3 * * *', keep: 1, passphrase: null }
  const backups = makeBackups({ config, dataDir, store, clock, clockGuard, log })
  const emptyJob = { check: async () => {}, run: async () => {} }
  return jobTable({
    store,
    log,
    clockGuard,
    webhooks,
    backups,
    node: null,
    report: emptyJob as never,
    watchUpkeep: () => {},
    trail: { store, key: openSigningKey(dataDir), folder: dataDir, log },
    lastUses: { flush: async () => {} } as never,
    shareOpens: { flush: async () => {} } as never,
    ingestCounts: makeIngestCounts(store, clock, log, clockGuard),
    disk: emptyJob as never,
    fsyncProbe: emptyJob as never,
    memory: emptyJob as never,
    dispatchCron: '* * * * *',
    backupCron: '17 3 * * *',
    recount: emptyJob as never,
    retention: { days: 30, bytes: null, auditDays: 30 },
  })
}

/** One record of every kind that expires, all from this minute. */
async function fill(store: Store): Promise<string> {
  const { id } = (await store.orgs.find('default'))!
  const events = Array.from({ length: 300 }, (_, n) => makeEvent(`evt_${n}`, { occurredAtMs: start }))
  await store.events.append({ ...makeBatch(id, events), receivedAtMs: start })
  for (let n = 0; n < 3; n++) await store.audit.append(makeAudit(id, { occurredAtMs: start }))
  const account = makeAccount()
  const times = { createdAtMs: start, lastSeenAtMs: start, expiresAtMs: start + 7 * day }
  await store.accounts.create({
    account,
    orgId: id,
    role: 'owner',
    audit: makeAudit(id, { occurredAtMs: start }),
  })
  await store.signIns.create({
    signIn: makeSignIn(account.id, id, times),
    network: '127.0.0.0/24',
    audit: makeAudit(id, { occurredAtMs: start }),
  })
  const deleted = makeOrg({ slug: 'going' })
  await store.orgs.create({ org: deleted, audit: makeAudit(deleted.id, { occurredAtMs: start }) })
  const deletion = { orgId: deleted.id, askedAtMs: start, dueAtMs: start + 7 * day }
  await store.orgs.requestDeletion({ ...deletion, audit: makeAudit(deleted.id, { occurredAtMs: start }) })
  return id
}

async function countsOf(store: Store, dataDir: string, orgId: string) {
  const accounts = await store.accounts.list()
  return {
    events: await countAll(store, orgId, {}, 10 ** 9),
    deliveries: (await deliveriesOf(store, orgId)).length,
    signIns: (await Promise.all(accounts.map(({ id }) => store.signIns.list(id)))).flat().length,
    orgs: (await store.orgs.list()).length,
    trimmed: Object.keys(await store.audit.trims()).length,
    backups: (await listBackups(join(dataDir, 'backups'))).length,
  }
}

async function deliveriesOf(store: Store, orgId: string) {
  const query = { orgId, status: null, endpointId: null, limit: 100, bytesMax: 10 ** 6, beforeSeq: null }
  return (await store.webhooks.list(query)).deliveries
}

function webhooksOf(store: Store, dataDir: string, { clock }: ClockGuard): Webhooks {
  const config = { backoffMs: [60_000, 300_000], allow: ['127.0.0.0/8'], caFile: null, proxy: null }
  const log = startLog({ level: 'error', clock })
  const cron = { cron: '* * * * *', sinkDir: null, version: 'test', random: () => 0 }
  return startWebhooks({ config: { ...config, ...cron }, dataDir, store, clock, log, ...cron })
}

async function sendTo(url: string, store: Store, orgId: string, now: number): Promise<void> {
  const fields = { orgId, endpointId: null, url, lane: new URL(url).host, body: '{}' }
  const delivery = { id: `wh_${crypto.randomUUID()}`, ...fields, scheduledAtMs: now }
  await store.webhooks.schedule({ delivery, audit: makeAudit(orgId, { occurredAtMs: now }) })
}

test('every job that deletes by age deletes nothing under a wrong clock, and everything once it is confirmed', async () => {
  using temp = tempDir('clock-jumps')
  const dataDir = temp.join('data')
  const { guard, jump, pass } = setTime()
  using receiver = Bun.serve({ port: 0, fetch: () => new Response('') })
  const store = await openTestFolder(dataDir, guard.clock)
  const webhooks = webhooksOf(store, dataDir, guard)
  const jobs = deletingJobs(store, dataDir, guard, webhooks)
  const orgId = await fill(store)
  await sendTo(receiver.url.href, store, orgId, start)
  await webhooks.run(guard.clock.now())
  await webhooks.idle()
  const runAll = async () => {
    for (const job of jobs) {
      if (job.id === 'webhook-dispatch') continue
      await job.run(guard.clock.now(), new AbortController().signal)
      await job.run(guard.clock.now(), new AbortController().signal)
    }
    await settled(join(dataDir, 'backups'))
  }
  await runAll()
  const countsBefore = await countsOf(store, dataDir, orgId)
  expect(countsBefore).toMatchObject({ events: 300, deliveries: 1, signIns: 1, orgs: 2, trimmed: 0 })
  for (const byMs of jumps) {
    jump(byMs)
    pass(7_000)
    await runAll()
    const { backups, ...counts } = await countsOf(store, dataDir, orgId)
    expect([byMs / hour, { ...countsBefore, ...counts }]).toEqual([byMs / hour, countsBefore])
    expect(backups).toBeGreaterThanOrEqual(countsBefore.backups)
    jump(-byMs)
    await runAll()
    const back = await countsOf(store, dataDir, orgId)
    expect([byMs / hour, { ...back, backups: 1 }]).toEqual([byMs / hour, { ...countsBefore, backups: 1 }])
  }
  jump(400 * day)
  guard.confirm()
  await runAll()
  const countsAfter = await countsOf(store, dataDir, orgId)
  expect(countsAfter).toMatchObject({
    events: 0,
    deliveries: 0,
    signIns: 0,
    orgs: 1,
    backups: isOnPostgres ? 0 : 1,
  })
  expect(countsAfter.trimmed).toBeGreaterThan(0)
  await webhooks.stop()
  await store.close()
})

/** Scheduled backups run in the background. */
async function settled(dir: string): Promise<void> {
  for (let last = -1; ;) {
    await Bun.sleep(150)
    const names = (await listBackups(dir)).length
    const isBusy =
      [...new Bun.Glob('.partial-*/**').scanSync({ cwd: dir, dot: true, onlyFiles: false })].length > 0
    if (!isBusy && names === last) return
    last = names
  }
}

for (const byMs of jumps) {
  test(`a retry waits as long as before a jump of ${byMs / hour} hours, also one in flight`, async () => {
    using temp = tempDir('clock-jumps')
    const { guard, jump, pass } = setTime()
    const released = Promise.withResolvers<void>()
    let requests = 0
    using receiver = Bun.serve({
      port: 0,
      async fetch() {
        if (++requests === 2) await released.promise
        return new Response('', { status: 500 })
      },
    })
    const store = await openTestFolder(temp.join('data'), guard.clock)
    const webhooks = webhooksOf(store, temp.join('data'), guard)
    guard.onJump(webhooks.clockJumped)
    const { id } = (await store.orgs.find('default'))!
    await sendTo(receiver.url.href, store, id, guard.clock.now())
    const run = async () => {
      await webhooks.run(guard.clock.now())
      await webhooks.idle()
    }
    const attempts = async () => (await deliveriesOf(store, id))[0]!.attempts
    await run()
    expect(await attempts()).toBe(1)
    jump(byMs)
    pass(50_000)
    await run()
    expect(await attempts()).toBe(1)
    pass(11_000)
    const running = run()
    while (requests < 2) await Bun.sleep(5)
    jump(-byMs) // while the retry is in flight
    released.resolve()
    await running
    expect(await attempts()).toBe(2)
    pass(290_000)
    await run()
    expect(await attempts()).toBe(2)
    pass(11_000)
    await run()
    expect(await attempts()).toBe(3)
    await webhooks.stop()
    await store.close()
  })
}

test('notices, the doctor and the clock page report the jump to operators, and one of them confirms it', async () => {
  await using server = await testServer()
  const cookie = await server.signIn('owner')
  const headers = { cookie, origin: server.url }
  const get = async (path: string) => (await server.call(path, { headers })).json() as Promise<never>
  expect((await server.call('/api/clock', { headers })).status).toBe(403)
  const [account] = await server.store.accounts.list()
  const audit = makeAudit('org_system')
  await server.store.accounts.setOperator({ accountId: account!.id, operator: true, audit })
  expect(await get('/api/clock')).toMatchObject({ hold: null })
  server.jump(2 * hour)
  const { hold } = (await get('/api/clock')) as { hold: { message: string } }
  expect(hold.message).toContain('2 hours ahead of')
  expect(await get('/api/webhooks/notices')).toMatchObject({
    notices: [{ code: 'clock_jumped', href: '/settings/system', message: hold.message }],
  })
  const { checks } = (await get('/api/doctor')) as { checks: { id: string; status: string }[] }
  expect(checks.find(({ id }) => id === 'clock-jump')).toMatchObject({ status: 'warning' })
  expect((await server.call('/readyz')).status).toBe(200)
  const confirmed = await server.call('/api/clock/confirm', { method: 'POST', headers })
  expect(await confirmed.json()).toMatchObject({ hold: null })
  expect(await get('/api/webhooks/notices')).toEqual({ notices: [] } as never)
  const { entries } = await server.store.audit.list({ orgId: 'org_system', limit: 1, beforeSeq: null })
  expect(entries).toMatchObject([{ action: 'clock.confirmed', metadata: { jumpMs: expect.any(Number) } }])
})

test('the executable: a folder last used under another clock is reported until it is confirmed', async () => {
  using temp = tempDir('clock-jumps')
  const dataDir = temp.join('data')
  mkdirSync(dataDir)
  const first = await startAppliance({ dataDir })
  const running = await first.cli('clock', '--json')
  expect(JSON.parse(running.stdout)).toMatchObject({ hold: null })
  await first.stop()
  const path = join(dataDir, 'clock')
  const stored = JSON.parse(readFileSync(path, 'utf8')) as { wallMs: number; expectedMs: number }
  const earlier = { wallMs: stored.wallMs - 400 * day, expectedMs: stored.expectedMs - 400 * day }
  writeFileSync(path, JSON.stringify({ ...stored, ...earlier }))
  const clockCheck = async () => {
    const { stdout } = await cli(['doctor', '--json'], { dataDir })
    const { checks } = JSON.parse(stdout) as { checks: { id: string; status: string; detail: string }[] }
    return checks.find(({ id }) => id === 'clock-jump')!
  }
  expect(await clockCheck()).toMatchObject({
    status: 'warning',
    detail: expect.stringContaining('400 days ahead'),
  })
  const second = await startAppliance({ dataDir })
  expect((await second.cli('clock')).stdout).toContain('400 days ahead')
  expect(await clockCheck()).toMatchObject({ status: 'warning' })
  await second.stop()
  expect((await cli(['clock', 'confirm'], { dataDir })).stdout).toContain('Retention follows it')
  expect(await clockCheck()).toMatchObject({ status: 'ok' })
})
