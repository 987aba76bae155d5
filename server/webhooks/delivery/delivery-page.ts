/** One page of deliveries for a query: filters, limit and cursor read, the store asked, the next cursor sealed. */
import type { Store } from '../../../db/contract/store.ts'
import type { Delivery, DeliveryStatus } from '../../../db/contract/webhooks.ts'
import { readLimit } from '../../http/query.ts'
import { invalidQuery, readQuery, type ParameterKind } from '../../http/query.ts'
import type { CursorCipher } from '../../http/cursor-cipher.ts'
import { limits } from '../../limits.ts'
import { deliveryStatuses } from './deliveries.ts'

const parameters: Record<string, ParameterKind> = {
  status: 'one',
  endpointId: 'one',
  limit: 'one',
  cursor: 'one',
}
const purpose = 'webhooks-cursor'
const pageDefault = 50
const pageMax = 200

/** A cursor sent alone goes on with its filters; beside other filters, or of another organization, it is refused. */
export async function readDeliveryPage(
  parts: { store: Pick<Store, 'webhooks'>; cursorCipher: CursorCipher },
  orgId: string,
  request: Request,
): Promise<{ deliveries: Delivery[]; nextCursor: string | null }> {
  const query = readQuery(request, parameters)
  const asked = { status: readStatus(query.one('status')), endpointId: query.one('endpointId') ?? null }
  const limit = readLimit(query, pageDefault, pageMax)
  const cursor = query.one('cursor')
  const walk =
    cursor === undefined
      ? { ...asked, beforeSeq: null }
      : openCursor(parts.cursorCipher, cursor, orgId, asked)
  const page = await parts.store.webhooks.list({
    orgId,
    ...walk,
    limit,
    bytesMax: limits.webhookPageBytesMax,
  })
  const { status, endpointId } = walk
  const nextCursor =
    page.next === null ? null : parts.cursorCipher.encrypt(purpose, [orgId, status, endpointId, page.next])
  return { deliveries: page.deliveries, nextCursor }
}

interface Filters {
  status: DeliveryStatus | null
  endpointId: string | null
}

function openCursor(
  cursorCipher: CursorCipher,
  text: string,
  orgId: string,
  asked: Filters,
): Filters & { beforeSeq: number } {
  const opened = cursorCipher.decrypt(purpose, text) as
    [string, DeliveryStatus | null, string | null, number] | null
  if (opened === null || opened[0] !== orgId) throw invalidQuery('cursor', 'Invalid cursor.')
  const [, status, endpointId, beforeSeq] = opened
  const differs = (given: string | null, own: string | null) => given !== null && given !== own
  if (differs(asked.status, status) || differs(asked.endpointId, endpointId)) {
    throw invalidQuery(
      'cursor',
      'This cursor was issued for other filters. Send it without filters or with the same ones.',
    )
  }
  return { status, endpointId, beforeSeq }
}

function readStatus(text: string | undefined): DeliveryStatus | null {
  if (text === undefined) return null
  const found = deliveryStatuses.find((status) => status === text)
  if (found === undefined)
    throw invalidQuery('status', `status must be one of ${deliveryStatuses.join(', ')}`)
  return found
}
