/** Scheduled reports: mailed to a real SMTP server and written to a folder, once per period, with failures retried. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSigningKey } from '../../server/audit/signing.ts'
import { sendMail } from '../../server/reports/mail.ts'
import { verifyReport } from '../../server/reports/proof.ts'
import { makeScheduledReports } from '../../server/reports/scheduled.ts'
import { reportRules } from '../../server/reports/schedule.ts'
import { event } from '../support/events.ts'
import { makeOrg, person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { attachmentOf, headerOf, smtpLogin, startSmtp, type SmtpReceiver } from '../support/smtp-server.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

const dayMs = 24 * 3_600_000
const metricsToken = 'sixteen-or-more-characters'

let temp: TempDir
let folder: string
let smtp: SmtpReceiver
let server: TestServer

beforeAll(async () => {
  temp = tempDir('reports')
  folder = temp.join('made', 'reports')
  smtp = await startSmtp()
  const rules = [
    { every: 'day', folder, email: ['ops@example.com', 'team@example.com'] },
    { every: 'week', zone: 'Asia/Kolkata', sites: ['shop'], folder },
    { every: 'month', org: 'later', folder },
  ]
  const login = { user: smtpLogin.user, pass: smtpLogin.password }
  const to = { host: '127.0.0.1', port: smtp.port, secure: false, login, from: 'reports@appliance.example' }
  smtp.refusal = 'Mailbox busy'
  const reports = { rules: reportRules(JSON.stringify(rules)), mailServer: to }
  // Noon of tomorrow, so that no period ends while the test runs, and none before the events are stored.
  const aheadMs = dayMs + dayMs / 2 - (Date.now() % dayMs)
  server = await testServer({ metricsToken, reports }, 'quick', { aheadMs })
  const ingest = await server.key('ingest')
  const noon = (back: number) => new Date(server.clock.now() - back * dayMs).toISOString()
  const events = Array.from({ length: 60 }, (_, n) =>
    event(`evt_${n}`, { occurredAt: noon(n % 3), type: 'tool.executed', siteId: 'shop', tool: 'search' }),
  )
  expect((await server.call('/v1/sdk/events', { key: ingest, body: { events } })).status).toBe(202)
  server.clock.move(60_000) // the first reports are due
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await smtp[Symbol.asyncDispose]()
  temp.remove()
})

const dayAt = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
const yesterday = (): string => dayAt(server.clock.now() - dayMs)
const files = (): string[] => (existsSync(folder) ? readdirSync(folder).toSorted() : [])
const dailyFiles = (): string[] => files().filter((name) => name.includes('-default-day-'))

async function sentEntries(orgId = server.org.id) {
  const query = { orgId, filter: { actions: ['report.sent'] }, limit: 100, beforeSeq: null }
  return (await server.store.audit.list(query)).entries
}

async function metric(name: string): Promise<string | undefined> {
  const text = await (await server.call('/metrics', { key: metricsToken })).text()
  return new RegExp(`^sightglass_${name}(?:\\{[^}]*\\})? (.*)$`, 'm').exec(text)?.[1]
}

test('a failure is counted and shown by the doctor, and does not stop the others', async () => {
  await until(() => files().length >= 2)
  await until(async () => (await metric('reports_failing')) === '3')
  const operator = await person(server, server.org, 'owner', { operator: true })
  const { checks } = (await (await operator.call('/api/doctor')).json()) as { checks: { id: string }[] }
  expect(checks.find(({ id }) => id === 'reports')).toMatchObject({
    status: 'warning',
    detail: expect.stringContaining('A daily report to ops@example.com: '),
  })
  expect(JSON.stringify(checks)).not.toContain(smtpLogin.password)
  expect(smtp.messages).toEqual([])
  expect((await server.call('/readyz')).status).toBe(200)
  expect(Number(await metric('report_failures_total'))).toBeGreaterThanOrEqual(3)
})

test('retried, each receiver gets the same signed report by mail', async () => {
  smtp.refusal = null
  server.clock.move(60_000)
  await until(() => smtp.messages.length === 2)
  await until(async () => (await sentEntries()).length === 4)
  expect(smtp.messages.map(({ to }) => to)).toEqual([['ops@example.com'], ['team@example.com']])
  const [first, second] = smtp.messages
  expect(first).toMatchObject({ from: 'reports@appliance.example', login: smtpLogin.user })
  expect(attachmentOf(first!)).toEqual(attachmentOf(second!))
  const verdict = verifyReport(attachmentOf(first!), null)
  const [since, end] = [yesterday(), dayAt(server.clock.now())].map((day) => `${day}T00:00:00.000Z`)
  expect(verdict).toMatchObject({ ok: true, events: 20, since, until: end, orgId: server.org.id })
  const changed = attachmentOf(first!).map((byte, index) => (index === 3_000 ? byte ^ 1 : byte))
  expect(verifyReport(changed, null)).toMatchObject({
    ok: false,
    fault: 'It was changed after it was signed',
  })

  expect(headerOf(first!, 'Message-ID')).toMatch(
    new RegExp(`^<report_[0-9a-f]{16}\\.${yesterday()}@appliance\\.example>$`),
  )
  expect(headerOf(first!, 'Subject')).toContain(`Daily report of ${server.org.name}: ${yesterday()}`)
  expect(headerOf(first!, 'Auto-Submitted')).toBe('auto-generated')
  const text = first!.text.replaceAll('=\r\n', '') // quoted-printable
  expect(text).toMatch(/^Tool calls +20 \(20 before\)\r$/m)
  const [name] = dailyFiles()
  expect(text).toContain(`sightglass verify ${name}`)
  const entry = (await sentEntries()).find(({ target }) => target.endsWith('/ops@example.com'))
  expect(entry).toMatchObject({
    actor: 'system',
    metadata: { since, until: end, events: 20, messageId: headerOf(first!, 'Message-ID') },
  })
})

test('files appear whole, one per period; the week of the chosen zone and site', async () => {
  const [week] = files().filter((name) => name.includes('-week-'))
  expect(dailyFiles()).toHaveLength(1)
  expect(dailyFiles()[0]).toMatch(new RegExp(`^sightglass-default-day-${yesterday()}-[0-9a-f]{8}\\.html$`))
  expect(verifyReport(readFileSync(join(folder, dailyFiles()[0]!)), null)).toMatchObject({
    ok: true,
    events: 20,
  })
  const verdict = verifyReport(readFileSync(join(folder, week!)), null)
  expect(verdict.ok).toBe(true)
  expect(Date.parse(verdict.until!) - Date.parse(verdict.since!)).toBe(7 * dayMs)
  expect(new Date(verdict.since!).getUTCHours()).toBe(18) // 23:30 in Kolkata
  expect(files().filter((fileName) => fileName.endsWith('.tmp'))).toEqual([])
})

test('an organization that is created later gets its report; a file that exists stays as it is', async () => {
  expect(files().filter((name) => name.includes('-later-'))).toEqual([])
  const later = await makeOrg(server, 'later')
  server.clock.move(5 * 60_000)
  await until(async () => (await sentEntries(later.id)).length === 1)
  expect(files().filter((name) => name.includes('-later-month-'))).toHaveLength(1)
  await until(async () => (await metric('reports_failing')) === '0')

  const tomorrow = dailyFiles()[0]!.replace(yesterday(), dayAt(server.clock.now()))
  writeFileSync(join(folder, tomorrow), 'mine')
  const draft = join(folder, `.${tomorrow}.killed.tmp`)
  writeFileSync(draft, 'as after kill -9')
  server.clock.move(dayMs)
  await until(() => smtp.messages.length === 4)
  await until(async () => (await sentEntries()).length >= 7)
  expect(dailyFiles()).toHaveLength(2)
  expect(readFileSync(join(folder, tomorrow), 'utf8')).toBe('mine')
  expect(existsSync(draft)).toBe(false)
  const ids = smtp.messages.map((message) => headerOf(message, 'Message-ID'))
  expect([ids[0], ids[2], new Set(ids).size]).toEqual([ids[1], ids[3], 2])
})

test('reports of days without a server follow one by one', async () => {
  const countBefore = smtp.messages.length
  server.clock.move(3 * dayMs)
  await until(() => smtp.messages.length === countBefore + 6)
  await until(() => dailyFiles().length === 5)
})

const createReports = (auditDays: number | null, rules: object[]) => {
  const log = { info: () => undefined, warn: () => undefined }
  const key = openSigningKey(temp.path)
  const { store } = server
  return makeScheduledReports(
    { store, log, key, mailServer: null, publicUrl: null, auditDays },
    reportRules(JSON.stringify(rules)),
  )
}
const never = new AbortController().signal

test('another node finds in the audit log that nothing is due', async () => {
  const filesBefore = dailyFiles()
  const node = createReports(null, [{ every: 'day', folder }])
  const now = server.clock.now()
  expect(node.isDue(now)).toBe(true)
  await node.run(now, never)
  expect([node.isDue(now), node.problems(), node.metrics()[0]?.samples]).toEqual([false, [], [{ value: 0 }]])
  expect(dailyFiles()).toEqual(filesBefore)
})

test('the report of a period whose audit entry may have expired is not created again', async () => {
  const now = Date.UTC(2026, 9, 20)
  const rules = [{ every: 'month', folder: temp.join('expired') }]
  await createReports(5, rules).run(now, never)
  expect(existsSync(temp.join('expired'))).toBe(false)
  await createReports(30, rules).run(now, never)
  expect(readdirSync(temp.join('expired'))).toEqual([expect.stringContaining('-month-2026-09-')])
})

test('a password is never sent in clear text to another machine', async () => {
  const login = { user: smtpLogin.user, pass: smtpLogin.password }
  const report = {
    facts: { org: 'x' },
    fileName: 'x.html',
    totals: [{ name: 'Visits', count: 0, before: 0 }],
  }
  const mail = { to: 'a@b.c', messageId: '<a@b>', title: 'Daily report', range: 'x', html: 'x', report }
  // Reaches the same server, whose address does not look local.
  const far = { host: '::ffff:7f00:1', port: smtp.port, secure: false, login, from: 'a@b.c' }
  let refusal: unknown = null
  try {
    await sendMail(far, mail as unknown as Parameters<typeof sendMail>[1])
  } catch (error) {
    refusal = error
  }
  expect(String(refusal)).toContain('STARTTLS')
})
