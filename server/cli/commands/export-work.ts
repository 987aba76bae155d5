/** The work behind `sightglass export`: one page after the other, from where the data folder is held. */
import type { EventFilter, EventPosition, Json } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { readQuery } from '../../http/query.ts'
import { metricsAnswer } from '../../api/metrics/answer.ts'
import { rangeParameters, readRange } from '../../api/metrics/answer.ts'
import { filterParameters, readFilter } from '../../api/traces/filter.ts'
import { walkPage } from '../../api/traces/export.ts'
import { requireOrg } from './org.ts'
import { numberOf, textOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

/** Fixes what the export covers and writes the row that tells of it. */
export async function beginTraces(context: VerbContext, params: Params): Promise<Json> {
  const { store } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const filter = filterOf(textOf(params, 'filter'))
  await tell(context, org.id, 'traces.exported', { format: textOf(params, 'format'), filter: { ...filter } })
  return { orgId: org.id, ceilingSeq: await store.events.lastSeq(org.id) }
}

export async function tracesPage({ store }: VerbContext, params: Params): Promise<Json> {
  const page = await store.events.page({
    orgId: textOf(params, 'orgId'),
    filter: filterOf(textOf(params, 'filter')),
    ...walkPage,
    before: (params['before'] ?? null) as EventPosition | null,
    ceilingSeq: numberOf(params, 'ceilingSeq'),
  })
  const next = page.next === null ? null : { ...page.next }
  return { events: page.events.map((event) => event.json), next }
}

export async function exportMetrics(context: VerbContext, params: Params): Promise<Json> {
  const { store, clock } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const range = readRange(readQuery(requestOf(textOf(params, 'filter')), rangeParameters), clock.now())
  await tell(context, org.id, 'metrics.exported', { format: textOf(params, 'format'), filter: { ...range } })
  return JSON.parse(await metricsAnswer(store, org.id, range)) as Json
}

function filterOf(query: string): EventFilter {
  return readFilter(readQuery(requestOf(query), filterParameters))
}

/** The query of an export is read by the rules of the gateway. */
function requestOf(query: string): Request {
  return new Request(`http://localhost/?${query.replace(/^\?/, '')}`)
}

async function tell(
  { store, clock }: VerbContext,
  orgId: string,
  action: string,
  metadata: { [member: string]: Json },
): Promise<void> {
  await store.audit.append(
    auditEntry({ orgId, actor: 'cli' }, { action, target: orgId, metadata }, clock.now()),
  )
}
