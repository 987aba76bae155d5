/** Has a webhook endpoint of a set-up file, known by its label in its organization. */
import type { Endpoint } from '../../../db/contract/webhooks.ts'
import { AppError } from '../../errors.ts'
import {
  changeEndpoint,
  createEndpoint,
  rotateEndpointSecret,
  type EndpointServices,
} from '../../webhooks/endpoints/endpoints.ts'
import { readFilters, readUrl } from '../../webhooks/endpoints/endpoint-fields.ts'
import { sealPurpose } from '../../webhooks/delivery/signing.ts'
import type { Acting, Applied } from './change.ts'
import type { SetupEndpoint } from './form.ts'

export async function applyEndpoint(
  services: EndpointServices,
  { at: _, secret, ...wanted }: SetupEndpoint,
  { orgId, actor, dryRun }: Acting,
): Promise<Applied> {
  const all = orgId === null ? [] : await services.store.webhooks.endpoints(orgId)
  const named = all.map(({ endpoint }) => endpoint).filter(({ label }) => label === wanted.label)
  if (named.length > 1)
    throw new AppError('conflict', `${named.length} endpoints have this label; rename all but one.`)
  const [known] = named
  readFilters(wanted)
  // A URL that stands already was checked when it came, maybe by other rules: that does not end a start.
  const url = known?.url === wanted.url ? wanted.url : readUrl(services, wanted.url)
  if (known === undefined) {
    if (orgId === null || dryRun) return { did: 'created', note: null }
    const { warnings } = await createEndpoint(services, { orgId, actor }, wanted, secret ?? undefined)
    return { did: 'created', note: warnings.map(({ message }) => message).join(' ') || null }
  }
  const who = { orgId: known.orgId, actor }
  const changes = differing(known, { ...wanted, url })
  const isNewSecret = secret !== null && openSecret(services, known) !== secret
  if (!dryRun && Object.keys(changes).length > 0) await changeEndpoint(services, who, known.id, changes)
  if (!dryRun && isNewSecret) await rotateEndpointSecret(services, who, known.id, secret)
  return { did: Object.keys(changes).length > 0 || isNewSecret ? 'changed' : 'unchanged', note: null }
}

function differing(
  known: Endpoint,
  wanted: Omit<SetupEndpoint, 'at' | 'secret'>,
): { [member: string]: unknown } {
  const before: { [member: string]: unknown } = {
    ...known,
    sites: known.siteIds,
    retryWaits: known.retryWaitsMs?.map((ms) => ms / 1_000) ?? null,
  }
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value)),
  )
}

/** Null when it was sealed under another key file: then the file's secret is the one that counts. */
function openSecret({ box }: EndpointServices, { orgId, id, sealedSecret }: Endpoint): string | null {
  try {
    return box.open(sealPurpose({ orgId, endpointId: id }), sealedSecret)
  } catch {
    return null
  }
}
