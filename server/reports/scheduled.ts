/** Creates scheduled reports, each once per period and receiver: to a folder, by email or by webhook. */
import { access, link, mkdir, open, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { auditEntry } from '../audit/entry.ts'
import type { SigningKey } from '../audit/signing.ts'
import { isoTime } from '../clock.ts'
import { periodParameters, readPeriod } from '../counts/period.ts'
import { AppError } from '../errors.ts'
import { readQuery } from '../http/request.ts'
import { newToken } from '../ids.ts'
import type { Log } from '../log.ts'
import { sendMail, type MailServer, type ReportMail } from './mail.ts'
import { signReport } from './proof.ts'
import { withinTime } from '../system/slow-files.ts'
import { draftReport, type ReportDraft } from './report.ts'
import { duePeriods, howOften, nextCompleteMs, receiverName, reportId } from './schedule.ts'
import type { Receiver, ReportPeriod, ReportRule } from './schedule.ts'
import { StoreError } from '../../db/contract/errors.ts'
import { hashOf, reportEndpoint, scheduleReport, type SentAct } from './webhook.ts'
import type { Org, Store } from '../../db/contract/store.ts'
import type { Endpoint } from '../../db/contract/webhooks.ts'
import { dayMs, hourMs } from '../../db/contract/units.ts'

export interface ScheduledReports {
  /** Whether a run could have something to do. */
  isDue(now: number): boolean
  /** Ends between two receivers when `ending` is aborted. Failures are logged once and retried. */
  run(now: number, ending: AbortSignal): Promise<void>
  /** What fails now, for the doctor; null without scheduled reports. */
  problems(): string[] | null
  metrics(): { name: string; help: string; kind: 'counter' | 'gauge'; samples: { value: number }[] }[]
}

interface ReportServices {
  store: Pick<Store, 'orgs' | 'audit' | 'events' | 'sites' | 'accessLogs' | 'webhooks' | 'keys' | 'health'>
  log: Pick<Log, 'info' | 'warn'>
  key: SigningKey
  mailServer: MailServer | null
  /** The address of the dashboard; null when it is not configured. */
  publicUrl: string | null
  /** Entries of the audit log expire after so long; null: never. */
  auditDays: number | null
}

/** One receiver of a report. */
interface Outlet {
  rule: ReportRule
  to: Receiver
  dueAtMs: number
  tries: number // since the last success
  problem: string | null
}

/** After each failed attempt; the last wait repeats. */
const waitsMs = [1, 5, 15, 60].map((minutes) => minutes * 60_000)

export function makeScheduledReports(
  services: ReportServices,
  rules: readonly ReportRule[],
): ScheduledReports {
  const { log } = services
  const outlets = rules.flatMap((rule) =>
    rule.to.map((to): Outlet => ({ rule, to, dueAtMs: 0, tries: 0, problem: null })),
  )
  const totals = { sent: 0, failed: 0 }
  // A clock that was set back must not leave an outlet waiting.
  const isDue = ({ dueAtMs }: Outlet, now: number) => dueAtMs <= now || dueAtMs > now + hourMs

  async function attempt(
    outlet: Outlet,
    reportCache: MadeReports,
    now: number,
    ending: AbortSignal,
  ): Promise<void> {
    const { rule, to } = outlet
    try {
      totals.sent += await deliverDue(services, outlet, reportCache, now, ending)
      Object.assign(outlet, { tries: 0, problem: null })
      // Another node may have sent it, or the clock may be wrong, so the audit log is asked again within the hour.
      outlet.dueAtMs = Math.min(nextCompleteMs(rule, now), now + hourMs)
    } catch (error) {
      if (error instanceof StoreError || ending.aborted) throw error
      const message = error instanceof Error ? error.message : String(error)
      totals.failed++
      outlet.dueAtMs = now + waitsMs[Math.min(outlet.tries++, waitsMs.length - 1)]!
      if (outlet.problem !== message)
        log.warn('report_failed', { every: rule.every, to: receiverName(to), message })
      outlet.problem = message
    }
  }

  return {
    isDue: (now) => outlets.some((outlet) => isDue(outlet, now)),
    async run(now, ending) {
      const reportCache: MadeReports = { last: null }
      for (const outlet of outlets.filter((candidate) => isDue(candidate, now))) {
        ending.throwIfAborted()
        await attempt(outlet, reportCache, now, ending)
      }
    },
    problems() {
      if (outlets.length === 0) return null
      return outlets.flatMap(({ rule, to, problem }) =>
        problem === null ? [] : [`${howOften[rule.every]} report to ${receiverName(to)}: ${problem}`],
      )
    },
    metrics() {
      if (outlets.length === 0) return []
      const failing = outlets.filter(({ problem }) => problem !== null).length
      const createMetric = (name: string, help: string, kind: 'counter' | 'gauge', value: number) => {
        return { name: `sightglass_${name}`, help, kind, samples: [{ value }] }
      }
      return [
        createMetric(
          'reports_sent_total',
          'Scheduled reports written or sent, by receiver.',
          'counter',
          totals.sent,
        ),
        createMetric(
          'report_failures_total',
          'Failed attempts to write or send a report.',
          'counter',
          totals.failed,
        ),
        createMetric(
          'reports_failing',
          'Receivers whose last attempt failed. It is retried.',
          'gauge',
          failing,
        ),
      ]
    },
  }
}

interface SignedReport {
  key: string
  draft: ReportDraft
  html: string
}

/** The last one, because the receivers of a report follow each other. */
interface MadeReports {
  last: SignedReport | null
}

/** Returns how many reports were sent. */
async function deliverDue(
  services: ReportServices,
  { rule, to }: Outlet,
  reportCache: MadeReports,
  now: number,
  ending: AbortSignal,
): Promise<number> {
  const { store, auditDays, log } = services
  const org = await orgOf(store, rule)
  const id = reportId(rule, org.id)
  const endpoint = 'webhook' in to ? await reportEndpoint(store, org.id, to.webhook) : null
  const target = `${id}/${endpoint?.id ?? receiverName(to)}`
  const filter = { actions: ['report.sent'], targets: [target] }
  const [newest] = (await store.audit.list({ orgId: org.id, filter, limit: 1, beforeSeq: null })).entries
  const sentUntilMs = newest === undefined ? null : Date.parse(String(newest.metadata['until']))
  let sentCount = 0
  for (const period of duePeriods(rule, now, sentUntilMs)) {
    // Its entry may have expired, so it is not known whether it was sent.
    if (sentUntilMs === null && auditDays !== null && period.untilMs < now - auditDays * dayMs) continue
    ending.throwIfAborted()
    const reportRequest = { org, rule, period, id, now }
    const report = await makeReport(services, reportRequest, reportCache)
    const since = isoTime(period.sinceMs)
    const until = isoTime(period.untilMs)
    const label = receiverName(to)
    const metadata = { label, since, until, events: report.draft.facts.events }
    const act = { action: 'report.sent', target, metadata, id: entryId(`${target} ${since}`) }
    const proof = await deliver(services, endpoint ?? to, report, reportRequest, act)
    if (proof === null) continue
    log.info('report_sent', { orgId: org.id, every: rule.every, to: label, since, until, ...proof })
    sentCount++
  }
  return sentCount
}

/** It may be created later, by the setup of the first owner or by a person. */
async function orgOf({ orgs }: Pick<Store, 'orgs'>, { org }: ReportRule): Promise<Org> {
  const organization = (await orgs.find(org ?? 'default')) ?? (org === null ? (await orgs.list())[0] : null)
  if (!organization) throw new AppError('not_found', `There is no organization "${org ?? 'default'}".`)
  return organization
}

interface Wanted {
  org: Org
  rule: ReportRule
  period: ReportPeriod
  id: string
  now: number
}

async function makeReport(
  { store, key }: ReportServices,
  { org, rule, period, id, now }: Wanted,
  reportCache: MadeReports,
): Promise<SignedReport> {
  const name = `${id} ${period.name}`
  if (reportCache.last?.key === name) return reportCache.last
  const search = new URLSearchParams({
    since: isoTime(period.sinceMs),
    until: isoTime(period.untilMs),
    zone: rule.zone,
  })
  for (const siteId of rule.siteIds) search.append('siteId', siteId)
  const query = readQuery(new Request(`http://localhost/?${search}`), periodParameters)
  const draft = await draftReport(store, org, readPeriod(query, now), key.publicKey)
  // The id tells reports of the same period with other zones or sites apart.
  draft.fileName = `sightglass-${org.slug}-${rule.every}-${period.name}-${id.slice(-8)}.html`
  reportCache.last = { key: name, draft, html: signReport(draft.body, draft.facts, key) }
  return reportCache.last
}

const titles = { day: 'Daily report', week: 'Weekly report', month: 'Monthly report' } as const

/** With its audit entry. Returns what identifies the delivery; null when another node made it. */
async function deliver(
  services: ReportServices,
  to: Receiver | Endpoint,
  { draft, html }: SignedReport,
  { id, period, rule, org, now }: Wanted,
  act: SentAct,
): Promise<{ [name: string]: string } | null> {
  const range = `${rule.every === 'week' ? 'week of ' : ''}${period.name} (${rule.zone})`
  const title = titles[rule.every]
  if ('url' in to) {
    const report = { id, rule, period, title, range, draft, html }
    return scheduleReport(services, to, report, act, now)
  }
  // The same after a crash before the audit entry, so that the receiver recognizes a repetition.
  const messageName = `${id}.${period.name}`
  const proof = await send(services, to, { title, range, report: draft, html }, messageName)
  const whole = { ...act, metadata: { ...act.metadata, ...proof } }
  const entry = auditEntry({ orgId: org.id, actor: 'system' }, whole, now)
  return services.store.audit.append(entry).then(
    () => proof,
    (error: unknown) => {
      if (error instanceof StoreError && error.kind === 'conflict') return null
      throw error
    },
  )
}

/** Of a receiver and a period: a node whose lease ended meanwhile cannot write a second entry. */
const entryId = (name: string): string => `aud_${hashOf(name)}`

async function send(
  { mailServer }: ReportServices,
  to: Receiver,
  mail: Omit<ReportMail, 'to' | 'messageId'>,
  messageName: string,
): Promise<{ file: string } | { messageId: string }> {
  const { fileName } = mail.report
  if ('folder' in to) {
    await writeOnce(to.folder, fileName, mail.html)
    return { file: fileName }
  }
  if (mailServer === null || !('email' in to))
    throw new AppError('unavailable', 'No mail server is configured (--smtp-url).')
  const messageId = `<${messageName}@${mailServer.from.split('@')[1]}>`
  await sendMail(mailServer, { ...mail, to: to.email, messageId })
  return { messageId }
}

/**
 * The file appears complete or not at all, and one that exists stays as it is. Its writer may have been killed before
 * it removed its draft and synced the folder, so both are done again.
 */
async function writeOnce(folder: string, name: string, text: string): Promise<void> {
  const path = join(folder, name)
  await withinTime({ path }, () => writeReport(path, text)).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT')
      throw new AppError('unavailable', `${path} ${error.message}.`)
    throw error
  })
}

async function writeReport(path: string, text: string): Promise<void> {
  const folder = dirname(path)
  const name = basename(path)
  await mkdir(folder, { recursive: true })
  if (!(await exists(path))) await linkDraft(folder, name, text)
  const names = await readdir(folder)
  const draftNames = names.filter((fileName) => fileName.startsWith(`.${name}.`) && fileName.endsWith('.tmp'))
  await Promise.all(draftNames.map((draftName) => rm(join(folder, draftName), { force: true })))
  await synced(folder, 'r', async () => undefined)
}

/** A node whose lease ended may still write the same file: the first one stays. */
async function linkDraft(folder: string, name: string, text: string): Promise<void> {
  const path = join(folder, name)
  const draft = join(folder, `.${name}.${newToken()}.tmp`)
  try {
    await synced(draft, 'wx', (file) => file.writeFile(text))
    await link(draft, path).catch(async (error: unknown) => {
      if (!(await exists(path))) throw error
    })
  } finally {
    await rm(draft, { force: true })
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

async function synced(
  path: string,
  flags: string,
  work: (file: Awaited<ReturnType<typeof open>>) => Promise<unknown>,
): Promise<void> {
  const file = await open(path, flags, 0o640)
  try {
    await work(file)
    await file.sync()
  } finally {
    await file.close()
  }
}
