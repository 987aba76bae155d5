/** The work behind `sightglass demo`: takes its batches as ingest would, and removes them again. */
import type { AuditEntry, Json } from '../../../db/contract/store.ts'
import { demoSiteId } from '../../demo/event.ts'
import { newId } from '../../ids.ts'
import { acceptEvents } from '../../ingest/accept.ts'
import { demoKeyId } from '../../ingest/sender-ids.ts'
import { requireOrg } from './org.ts'
import { numberOf, textOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

/** One audit row for the whole filling, before its first batch; then what the site pushes of itself. */
export async function beginDemo(context: VerbContext, params: Params): Promise<Json> {
  const { store } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const metadata = { siteId: demoSiteId, seed: numberOf(params, 'seed'), events: numberOf(params, 'events') }
  await store.audit.append(entry(context, org.id, 'demo.filled', metadata))
  // Only now, so that a server that never fills does not keep the registry in memory.
  const { pushDemo } = await import('../../demo/push.ts')
  await pushDemo(store, org.id, context.clock.now())
  return { orgId: org.id, orgSlug: org.slug }
}

/** `body` is what a backend would post to /v1/sdk/events; it passes the same checks. */
export async function appendDemo({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const { records, rejected } = acceptEvents(textOf(params, 'body'), 'application/json', [demoSiteId])
  const first = rejected[0]?.issues[0]
  if (first) throw new Error(`a demo event breaks the contract: ${first.path} ${first.message}`)
  const result = await store.events.append({
    orgId: textOf(params, 'orgId'),
    keyId: demoKeyId,
    receivedAtMs: clock.now(),
    events: records,
  })
  return { accepted: result.accepted, deduped: result.deduped, rejected: result.rejected.length }
}

export async function removeDemo(context: VerbContext, params: Params): Promise<Json> {
  const { store } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const audit = entry(context, org.id, 'demo.removed', { siteId: demoSiteId })
  const removed = await store.events.removeSite({ orgId: org.id, siteId: demoSiteId, audit })
  return { orgId: org.id, orgSlug: org.slug, siteId: demoSiteId, removed }
}

export async function serverAddress({ baseUrl, ingestUrl }: VerbContext): Promise<Json> {
  return { baseUrl, ingestUrl }
}

function entry(
  { clock }: VerbContext,
  orgId: string,
  action: string,
  metadata: AuditEntry['metadata'],
): AuditEntry {
  return {
    id: newId('aud'),
    orgId,
    actor: 'cli',
    action,
    target: demoSiteId,
    metadata,
    occurredAtMs: clock.now(),
  }
}
