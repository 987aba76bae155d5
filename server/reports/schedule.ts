/** The reports of `serve --report` and `[[report]]`: what each contains, who receives it, and for which periods. */
import { resolve } from 'node:path'
import { AppError, UsageError } from '../errors.ts'
import { sha256Hex } from '../ids.ts'
import { readEmail } from '../identity/people/members.ts'
import { limits } from '../limits.ts'
import { optionTables, type OptionTable } from '../text/option-tables.ts'
import { isZone, momentOf, moved, startOf, wallOf } from '../text/time-zone.ts'
import { hourMs } from '../../db/contract/units.ts'

export interface ReportRule {
  org: string | null // slug or id; null: `default`, or the first one
  every: Every
  zone: string
  siteIds: string[] // empty: all
  to: Receiver[] // at least one
}

/** `webhook`: the id or the label of an endpoint of the organization. */
export type Receiver = { folder: string } | { email: string } | { webhook: string }

type Every = (typeof everies)[number]

const everies = ['day', 'week', 'month'] as const

export const howOften = { day: 'daily', week: 'weekly', month: 'monthly' } as const

const rulesMax = 100
const emailsMax = 20 // of one report
const webhooksMax = 20
const sitesMax = 100
const fields = ['org', 'every', 'zone', 'sites', 'folder', 'email', 'webhook']

/** `week=/srv/reports,month=ops@example.com` of the flag, or the tables of the file as JSON. */
export function reportRules(text: string): ReportRule[] {
  const rules = optionTables(text, 'report', fields)?.map(ruleOf) ?? pairsOf(text)
  if (rules.length > rulesMax) throw new UsageError(`at most ${rulesMax} reports can be scheduled`)
  const deliveries = rules.flatMap((rule) =>
    rule.to.map((to) => ({ every: rule.every, to: receiverName(to), key: outletKey(rule, to) })),
  )
  const twice = deliveries.find(({ key }, index) =>
    deliveries.slice(0, index).some((earlierDelivery) => earlierDelivery.key === key),
  )
  if (twice !== undefined)
    throw new UsageError(`${twice.to} would receive the same ${howOften[twice.every]} report twice`)
  return rules
}

const outletKey = (rule: ReportRule, to: Receiver): string =>
  `${reportId(rule, rule.org ?? 'default')} ${receiverName(to)}`

export function receiverName(to: Receiver): string {
  if ('webhook' in to) return `${webhookMark}${to.webhook}`
  return 'folder' in to ? to.folder : to.email
}

/** Before the name of an endpoint in the flag. */
const webhookMark = 'webhook:'

function pairsOf(text: string): ReportRule[] {
  const pairs = text.split(',').map((pair) => pair.trim())
  return pairs
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equalsIndex = pair.indexOf('=')
      if (equalsIndex <= 0 || equalsIndex === pair.length - 1)
        throw new UsageError(
          `"${pair}" is not EVERY=FOLDER, EVERY=EMAIL or EVERY=webhook:ENDPOINT, such as week=/srv/reports`,
        )
      const to = [receiverOf(pair.slice(equalsIndex + 1))]
      return { org: null, every: everyOf(pair.slice(0, equalsIndex)), zone: 'UTC', siteIds: [], to }
    })
}

function receiverOf(text: string): Receiver {
  if (text.startsWith(webhookMark)) return { webhook: endpointName(text.slice(webhookMark.length)) }
  const isEmail = text.includes('@') && !text.includes('/')
  return isEmail ? { email: emailOf(text) } : { folder: resolve(text) }
}

function endpointName(text: string): string {
  if (text !== '' && [...text].length <= limits.labelCharsMax) return text
  throw new UsageError(`a webhook endpoint is named by its id or its label, not "${text.slice(0, 100)}"`)
}

function ruleOf(optionTable: OptionTable): ReportRule {
  const every = everyOf(optionTable.text('every'))
  const zone = optionTable.text('zone', 'UTC')
  if (!isZone(zone)) throw new UsageError(`"${zone}" is not an IANA time zone such as Europe/Berlin`)
  const siteIds = optionTable.texts('sites')
  if (siteIds.length > sitesMax) throw new UsageError(`a report has at most ${sitesMax} sites`)
  if (siteIds.some((id) => id === '' || [...id].length > limits.idCharsMax))
    throw new UsageError(`a site has 1 to ${limits.idCharsMax} characters`)
  const emails = optionTable.texts('email')
  if (emails.length > emailsMax) throw new UsageError(`a report is sent to at most ${emailsMax} addresses`)
  const webhooks = optionTable.texts('webhook')
  if (webhooks.length > webhooksMax)
    throw new UsageError(`a report is sent to at most ${webhooksMax} webhook endpoints`)
  const folder = optionTable.optional('folder')
  const to = [
    ...(folder === null ? [] : [{ folder: resolve(folder) }]),
    ...emails.map((email) => ({ email: emailOf(email) })),
    ...webhooks.map((name) => ({ webhook: endpointName(name) })),
  ]
  if (to.length === 0) throw new UsageError('[[report]] needs folder, email or webhook')
  return { org: optionTable.optional('org'), every, zone, siteIds, to }
}

function everyOf(text: string): Every {
  const every = everies.find((candidate) => candidate === text)
  if (every === undefined) throw new UsageError(`every is ${everies.join(', ')}, not "${text}"`)
  return every
}

function emailOf(text: string): string {
  try {
    return readEmail(text)
  } catch (error) {
    if (error instanceof AppError) throw new UsageError(`"${text}" is not an email address`)
    throw error
  }
}

/** Names the contents of a report, not its receivers. */
export function reportId({ every, zone, siteIds }: Omit<ReportRule, 'org' | 'to'>, orgId: string): string {
  const contents = [orgId, every, zone, siteIds.toSorted()]
  return `report_${sha256Hex(JSON.stringify(contents)).slice(0, 16)}`
}

/** Whole UTC hours, because events are counted per hour. */
export interface ReportPeriod {
  name: string // 2026-11-22, its first day in the zone, or 2026-10
  sinceMs: number
  untilMs: number // exclusive
}

/** Events arrive late, so a period is complete this long after its end. */
const completeAfterMs = 10 * 60_000

/** After a longer outage, the older periods are left out. */
const periodsMax = 7

/**
 * The complete periods without a report, oldest first. `sentUntilMs` is the end of the last one with a report; null
 * before the first report, when only the newest period is due.
 */
export function duePeriods(
  { every, zone }: Pick<ReportRule, 'every' | 'zone'>,
  nowMs: number,
  sentUntilMs: number | null,
): ReportPeriod[] {
  const due: ReportPeriod[] = []
  let end = startOf(wallOf(nowMs - completeAfterMs, zone), every)
  for (let back = 0; back < periodsMax; back++) {
    const start = moved(end, every, -1)
    const sinceMs = hourAt(start, zone)
    const untilMs = hourAt(end, zone)
    if (sentUntilMs !== null && untilMs <= sentUntilMs) break
    const name = new Date(start).toISOString().slice(0, every === 'month' ? 7 : 10)
    // A zone that crosses the date line skips a day.
    if (untilMs > sinceMs) due.unshift({ name, sinceMs, untilMs })
    if (sentUntilMs === null && due.length > 0) break
    end = start
  }
  return due
}

/** When the period that contains `nowMs` is complete. */
export function nextCompleteMs({ every, zone }: Pick<ReportRule, 'every' | 'zone'>, nowMs: number): number {
  const start = startOf(wallOf(nowMs - completeAfterMs, zone), every)
  return momentOf(moved(start, every, 1), zone) + completeAfterMs
}

const hourAt = (wall: number, zone: string): number => Math.floor(momentOf(wall, zone) / hourMs) * hourMs
