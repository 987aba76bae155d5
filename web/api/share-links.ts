/** The calls about share links: pages that anybody with the link may read. */
import { get, json, post } from './api.ts'
import type { ShareLinkView } from '../../server/sharing/links.ts'

export type ShareLink = ShareLinkView

export interface NewShareLink {
  name: string
  page: ShareLink['page']
  search: string
  days: number
  panels?: string[]
  events?: boolean
  identities?: boolean
  frameOrigins?: string[]
}

export const shareLinksApi = {
  list: async (signal?: AbortSignal) => (await get<{ links: ShareLink[] }>('/api/share-links', signal)).links,
  create: async (link: NewShareLink) =>
    json<{ link: ShareLink; token: string }>(await post('/api/share-links', link)),
  revoke: async (id: string) => void (await post(`/api/share-links/${encodeURIComponent(id)}/revoke`, {})),
}
