/** The store's interface for share links: pages that anybody with the link may read, until it ends. */
import type { AuditEntry } from './audit.ts'
import type { Role } from './identity.ts'

export interface ShareLink {
  id: string
  orgId: string
  tokenHash: string // SHA-256; the token itself is not stored
  name: string
  content: string // JSON of what is shown (server/sharing/), which the store does not read
  createdBy: string // account id
  createdAtMs: number
  expiresAtMs: number
  revokedAtMs: number | null
  opened: number
  lastOpenedAtMs: number | null
}

export type NewShareLink = Omit<ShareLink, 'revokedAtMs' | 'opened' | 'lastOpenedAtMs'>

export interface ShareLinkStore {
  /**
   * Also deletes the links of the organization that ended before `endedBeforeMs`. `conflict` when `linksMax` links are
   * left, `not_found` when the creator has none of `roles` in the organization any more.
   */
  create(command: {
    link: NewShareLink
    roles: readonly Role[]
    linksMax: number
    endedBeforeMs: number
    audit: AuditEntry
  }): Promise<void>
  /** Newest first, with those that ended. */
  list(orgId: string): Promise<ShareLink[]>
  /** Of any organization, also when it ended; null when no link has this hash. */
  find(tokenHash: string): Promise<ShareLink | null>
  /** `not_found` for an unknown link, `conflict` for one that is revoked already. Returns how often it was opened. */
  revoke(command: { orgId: string; id: string; now: number; audit: AuditEntry }): Promise<{ opened: number }>
  /**
   * Adds to the count of a link. The entry is written with the first opening and then at most once an hour. A link that
   * was deleted is no error.
   */
  opened(command: {
    orgId: string
    id: string
    count: number
    now: number
    audit: AuditEntry
  }): Promise<{ isAudited: boolean }>
}
