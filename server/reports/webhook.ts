/** Sends a report to a webhook endpoint of its organization: one message per period, with the signed file inside. */
import { createHash } from 'node:crypto'
import { auditEntry } from '../audit/entry.ts'
import { isoTime } from '../clock.ts'
import { AppError } from '../errors.ts'
import { limits } from '../limits.ts'
import { countText } from '../text/html.ts'
import { escapeForChat } from '../webhooks/alerts/alerts.ts'
import { notComparable } from '../counts/headlines.ts'
import type { ReportDraft } from './report.ts'
import type { ReportPeriod, ReportRule } from './schedule.ts'
import type { Store } from '../../db/contract/store.ts'
import type { Endpoint } from '../../db/contract/webhooks.ts'

interface WebhookReport {
  id: string // of the report
  rule: Pick<ReportRule, 'every' | 'zone' | 'siteIds'>
  period: ReportPeriod
  title: string // such as: Weekly report
  range: string // such as: week of 2026-11-16 (UTC)
  draft: Pick<ReportDraft, 'facts' | 'fileName' | 'totals'>
  html: string
}

/** `name`: the id of an endpoint, or its label. */
export async function reportEndpoint(
  { webhooks }: Pick<Store, 'webhooks'>,
  orgId: string,
  name: string,
): Promise<Endpoint> {
  const endpoints = await webhooks.bareEndpoints(orgId)
  const byId = endpoints.find(({ id }) => id === name)
  const [endpoint, secondEndpoint] =
    byId === undefined ? endpoints.filter(({ label }) => label === name) : [byId]
  if (secondEndpoint !== undefined)
    throw new AppError('conflict', `Several webhook endpoints have the label "${name}". Use the id of one.`)
  if (endpoint === undefined)
    throw new AppError('not_found', `There is no webhook endpoint with the id or the label "${name}".`)
  return endpoint
}

/** The audit entry of a delivery. */
export interface SentAct {
  id: string
  action: string
  target: string
  metadata: { [name: string]: string | number }
}

/** As long as a random id. */
export const hashOf = (name: string): string =>
  createHash('sha256').update(name).digest('base64url').slice(0, 22)

/**
 * Schedules the delivery together with its audit entry. Its id is that of report, period and endpoint, so that a node
 * that lost its lease meanwhile cannot schedule it twice. Null: another node did.
 */
export async function scheduleReport(
  { store, publicUrl }: { store: Pick<Store, 'webhooks'>; publicUrl: string | null },
  endpoint: Endpoint,
  report: WebhookReport,
  act: SentAct,
  now: number,
): Promise<{ deliveryId: string } | null> {
  const { id: endpointId, orgId, url } = endpoint
  const deliveryId = `wh_${hashOf(`${report.id} ${report.period.name} ${endpointId}`)}`
  const whole = { ...act, metadata: { ...act.metadata, deliveryId } }
  const isNew = await store.webhooks.schedule({
    delivery: {
      id: deliveryId,
      orgId,
      endpointId,
      url,
      lane: endpointId,
      body: reportMessage(report, publicUrl, now),
      scheduledAtMs: now,
    },
    audit: auditEntry({ orgId, actor: 'system' }, whole, now),
  })
  return isNew ? { deliveryId } : null
}

/** The file is inside unless the message would be larger than the largest batch of events. */
function reportMessage(report: WebhookReport, publicUrl: string | null, now: number): string {
  const whole = messageText(report, publicUrl, now, report.html)
  return Buffer.byteLength(whole) <= limits.webhookBatchBytesMax
    ? whole
    : messageText(report, publicUrl, now, null)
}

/** "48,210 requests (41,007 before)": the unit of the report, or the first other headline where it counts nothing. */
function firstTotal(totals: ReportDraft['totals']): string {
  const first = totals.find(({ count, before }) => count + (before ?? 0) > 0) ?? totals[0]
  if (first === undefined) return 'No requests or visits'
  const { name, count, before } = first
  const noun = name.toLowerCase()
  const unit = count === 1 ? noun.slice(0, -1) : noun
  return `${countText(count)} ${unit} (${before === null ? notComparable : `${countText(before)} before`})`
}

function messageText(report: WebhookReport, publicUrl: string | null, now: number, html: string | null) {
  const { id, rule, period, title, range, draft } = report
  const { facts, fileName, totals } = draft
  const { since, until, events, org } = facts
  const query = new URLSearchParams({ since, until })
  for (const siteId of rule.siteIds) query.append('siteId', siteId)
  const link = `${publicUrl ?? ''}/analytics?${query}`
  const counts = firstTotal(totals)
  const text = `${title} of ${escapeForChat(org)}: ${range}. ${counts}.${publicUrl === null ? '' : ` ${link}`}`
  const reportFields = { reportId: id, every: rule.every, zone: rule.zone, period: period.name, since, until }
  const file = {
    fileName,
    bytes: Buffer.byteLength(report.html),
    sha256: createHash('sha256').update(report.html).digest('hex'),
  }
  const data = {
    ...reportFields,
    organization: org,
    sites: rule.siteIds,
    events,
    totals,
    link,
    ...file,
    html,
  }
  return JSON.stringify({ type: 'report.ready', timestamp: isoTime(now), text, data })
}
