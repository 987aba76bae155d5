/** One page of the tool registry: filters, limit and cursor read, the store asked, the next cursor sealed. */
import type { Store } from '../../../db/contract/store.ts'
import { closeCursor, readCursor, readLimit } from '../../http/paging.ts'
import { invalidQuery, readQuery } from '../../http/query.ts'
import type { Seal } from '../../http/cursor-cipher.ts'
import { limits } from '../../limits.ts'
import { toolView } from './view.ts'

interface Asked {
  siteIds: string[]
  withRemoved: boolean
}

type Position = { siteId: string; name: string }

const list = 'tools-cursor'

/** The tools as JSON texts, by site and name. */
export async function readToolPage(
  { store, seal }: { store: Pick<Store, 'registry'>; seal: Seal },
  orgId: string,
  request: Request,
): Promise<{ tools: string[]; nextCursor: string | null }> {
  const query = readQuery(request, { siteId: 'many', removed: 'one', limit: 'one', cursor: 'one' })
  const limit = readLimit(query, limits.registryPageDefault, limits.registryPageMax)
  const siteIds = query.many('siteId')
  const removed = query.one('removed')
  if (removed !== undefined && !['true', 'false'].includes(removed))
    throw invalidQuery('removed', 'removed must be true or false')
  const isAsked = siteIds !== undefined || removed !== undefined
  const given: Asked = { siteIds: [...new Set(siteIds)].sort(), withRemoved: removed === 'true' }
  const cursor = readCursor<Asked, Position>(seal, list, orgId, query, isAsked ? given : null)
  const asked = cursor?.asked ?? given
  const { tools, hasMore } = await store.registry.tools({
    orgId,
    ...asked,
    after: cursor?.position ?? null,
    limit,
    bytesMax: limits.registryPageBytesMax,
  })
  const last = tools.at(-1)
  const nextCursor =
    hasMore && last !== undefined
      ? closeCursor(seal, list, orgId, asked, { siteId: last.siteId, name: last.name })
      : null
  return { tools: tools.map(toolView), nextCursor }
}
