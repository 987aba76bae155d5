/** Settings → Data: an organization's retention, its storage, and erasing a session or a subject. */
import { Elysia } from 'elysia'
import type { Org, RetentionSetting, Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { rolesOf } from '../../identity/permissions.ts'
import { json } from '../../http/response.ts'
import { readFields, wrongField } from '../../http/validate.ts'
import { readQuery } from '../../http/request.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Clock } from '../../clock.ts'
import type { RetentionRule } from '../../system/retention-rule.ts'
import type { Erasure, Erasures } from './erasures.ts'
import { countEvents } from '../../api/traces/export.ts'

interface RetentionRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
  retention: RetentionRule
  erasures: Erasures
}

const unparsed = { parse: 'none' } as const
const daysMax = 36_500

/** The time limit of counting; after it the owner decides without the number. */
const countMsMax = 8_000

export function retentionRoutes(services: RetentionRoutesServices) {
  const { store, signIns, clock, erasures } = services
  const view = async (org: Org, setting: RetentionSetting) => ({
    days: setting.days,
    bytes: setting.bytes,
    auditDays: setting.auditDays,
    appliance: services.retention,
    eventBytes: await store.retention.eventBytes(org.id),
  })
  const asOwner = async (request: Request) => {
    const { org, account } = await signIns.require(request, rolesOf('data.manage'))
    return { org, actor: { orgId: org.id, actor: `user:${account.id}` } }
  }
  return new Elysia()
    .get('/api/retention', async ({ request }) => {
      const { org } = await signIns.require(request)
      readQuery(request, {})
      return json(await view(org, await store.retention.setting(org.id)))
    })
    .post(
      '/api/retention',
      async ({ request }) => {
        const { org, actor } = await asOwner(request)
        const members = await readFields(request, {
          days: 'number?',
          bytes: 'number?',
          auditDays: 'number?',
        })
        const { days = null, bytes = null, auditDays = null } = members
        const setting = { days, bytes, auditDays }
        requireLimit('days', setting.days, daysMax)
        requireLimit('auditDays', auditDays, daysMax)
        requireLimit('bytes', setting.bytes, Number.MAX_SAFE_INTEGER)
        const metadata = { before: { ...(await store.retention.setting(org.id)) }, after: setting }
        const act = { action: 'retention.changed', target: org.id, metadata }
        const audit = auditEntry(actor, act, clock.now())
        await store.retention.set({ orgId: org.id, setting, audit })
        return json(await view(org, setting))
      },
      unparsed,
    )
    .post(
      '/api/erase',
      async ({ request }) => {
        const { org, actor } = await asOwner(request)
        await erasures.start(actor, await readErasure(request))
        return json(await erasures.view(org.id), 202)
      },
      unparsed,
    )
    .get('/api/erase', async ({ request }) => {
      const { org } = await asOwner(request)
      readQuery(request, {})
      return json(await erasures.view(org.id))
    })
    .post(
      '/api/erase/count', // not GET: names and addresses would appear in access logs of proxies
      async ({ request }) => {
        const { org } = await asOwner(request)
        const { kind, value } = await readErasure(request)
        const filter = kind === 'session' ? { sessionIds: [value] } : { subjects: [value] }
        const ceilingSeq = await store.events.lastSeq(org.id)
        return json({
          events: await countEvents(store.events, org.id, filter, { ceilingSeq, msMax: countMsMax }),
        })
      },
      unparsed,
    )
}

/** Exactly one of session and subject. */
async function readErasure(request: Request): Promise<Erasure> {
  const { session, subject } = await readFields(request, { session: 'text?', subject: 'text?' })
  if ((session === undefined) === (subject === undefined))
    throw wrongField('session', 'Give either a session or a subject.')
  const erasure: Erasure =
    session === undefined ? { kind: 'subject', value: subject ?? '' } : { kind: 'session', value: session }
  if (erasure.value === '') throw wrongField(erasure.kind, `${erasure.kind} must not be empty.`)
  return erasure
}

function requireLimit(name: string, value: number | null, max: number): void {
  if (value !== null && !(Number.isSafeInteger(value) && value >= 1 && value <= max))
    throw wrongField(name, `${name} must be an integer from 1 to ${max}, or omitted.`)
}
