/** Creates, lists, opens and revokes share links: pages that anybody with the link may read until it ends. */
import { auditEntry, type Actor } from '../audit/entry.ts'
import { isoTime, type Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newId, newShareToken, sha256Hex } from '../ids.ts'
import { rolesOf } from '../identity/permissions.ts'
import { limits } from '../limits.ts'
import { wrongField } from '../http/validate.ts'
import { checkContent, panelNames, type ShareContent } from './content.ts'
import { overviewPanelNames } from './overview.ts'
import { nameProblem } from '../text/names.ts'
import { StoreError } from '../../db/contract/errors.ts'
import type { ShareLink } from '../../db/contract/share-links.ts'
import type { Store } from '../../db/contract/store.ts'
import type { Log } from '../log.ts'
import { dayMs } from '../../db/contract/units.ts'

interface Services {
  store: Pick<Store, 'shareLinks' | 'retention'>
  clock: Clock
}

interface LinkFields {
  name: string
  page: string
  search: string
  panels?: string[] | undefined
  events?: boolean | undefined
  identities?: boolean | undefined
  days: number
  frameOrigins?: string[] | undefined
}

export interface ShareLinkView extends ShareContent {
  id: string
  name: string
  createdBy: string
  createdAt: string
  expiresAt: string
  revokedAt: string | null
  state: 'open' | 'expired' | 'revoked'
  opened: number
  lastOpenedAt: string | null
}

interface CountingServices extends Services {
  shareOpens: ShareOpens
}

export async function listLinks(services: CountingServices, orgId: string): Promise<ShareLinkView[]> {
  const { store, clock, shareOpens } = services
  const now = clock.now()
  await shareOpens.flush() // counts that are being written are neither in the list nor waiting
  return (await store.shareLinks.list(orgId)).map((link) => {
    const shown = viewOf(link, now)
    return { ...shown, opened: shown.opened + shareOpens.waiting(link.id) }
  })
}

/** The token is in this answer only. */
export async function createLink(
  services: Services,
  { accountId, ...actor }: Actor & { accountId: string },
  fields: LinkFields,
): Promise<{ link: ShareLinkView; token: string }> {
  const { store, clock } = services
  const now = clock.now()
  const content = contentOf(fields)
  await checkContent(store, actor.orgId, content, now)
  const { days } = fields
  if (!Number.isInteger(days) || days < 1 || days > limits.shareLinkDaysMax)
    throw wrongField('days', `days must be a whole number from 1 to ${limits.shareLinkDaysMax}`)
  const token = newShareToken()
  const link = {
    id: newId('shr'),
    orgId: actor.orgId,
    tokenHash: sha256Hex(token),
    name: nameOf(fields.name),
    content: JSON.stringify(content),
    createdBy: accountId,
    createdAtMs: now,
    expiresAtMs: now + days * dayMs,
  }
  const metadata = { name: link.name, ...content, expiresAt: isoTime(link.expiresAtMs) }
  const audit = auditEntry(actor, { action: 'share_link.created', target: link.id, metadata }, now)
  const command = {
    link,
    roles: rolesOf('share.manage'),
    linksMax: limits.shareLinksMax,
    endedBeforeMs: now - limits.shareLinkEndedMs,
    audit,
  }
  try {
    await store.shareLinks.create(command)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    // The creator has lost the role since the request began.
    if (error.kind === 'not_found')
      throw new AppError('forbidden', 'Only owners and admins can share pages.', { reason: 'wrong_role' })
    if (error.kind !== 'conflict') throw error
    throw new AppError(
      'conflict',
      `The organization has reached its limit of ${limits.shareLinksMax} share links.`,
      { hint: 'Links are removed from the list 90 days after their end.' },
    )
  }
  const unopened = { revokedAtMs: null, opened: 0, lastOpenedAtMs: null }
  return { link: viewOf({ ...link, ...unopened }, now), token }
}

export async function revokeLink(services: CountingServices, actor: Actor, id: string): Promise<void> {
  const { store, clock, shareOpens } = services
  const link = (await store.shareLinks.list(actor.orgId)).find((candidate) => candidate.id === id)
  if (link === undefined) throw new AppError('not_found', 'No share link has this id.')
  const act = { action: 'share_link.revoked', target: id, metadata: { name: link.name } }
  const now = clock.now()
  await shareOpens.flush() // the entry has the whole count
  try {
    await store.shareLinks.revoke({ orgId: actor.orgId, id, now, audit: auditEntry(actor, act, now) })
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'conflict') throw error
    throw new AppError('conflict', 'This link is already revoked.')
  }
}

const tokenForm = /^[A-Za-z0-9_-]{22}$/

/**
 * Null when the link never existed or ended. It is found by the hash of its token, so comparing takes no time that
 * depends on how much of a guess is right.
 */
export async function openLink(
  { store, clock }: Services,
  token: string,
): Promise<{ link: ShareLink; content: ShareContent } | null> {
  if (!tokenForm.test(token)) return null
  const link = await store.shareLinks.find(sha256Hex(token))
  if (link === null || stateOf(link, clock.now()) !== 'open') return null
  return { link, content: JSON.parse(link.content) as ShareContent }
}

function stateOf({ revokedAtMs, expiresAtMs }: ShareLink, now: number): ShareLinkView['state'] {
  if (revokedAtMs !== null) return 'revoked'
  return expiresAtMs <= now ? 'expired' : 'open'
}

function viewOf(link: ShareLink, now: number): ShareLinkView {
  const { id, name, createdBy, createdAtMs, expiresAtMs, revokedAtMs, opened, lastOpenedAtMs } = link
  return {
    ...(JSON.parse(link.content) as ShareContent),
    id,
    name,
    createdBy,
    createdAt: isoTime(createdAtMs),
    expiresAt: isoTime(expiresAtMs),
    opened,
    revokedAt: revokedAtMs === null ? null : isoTime(revokedAtMs),
    lastOpenedAt: lastOpenedAtMs === null ? null : isoTime(lastOpenedAtMs),
    state: stateOf(link, now),
  }
}

function contentOf({ page, search, panels, events, identities, frameOrigins }: LinkFields): ShareContent {
  const origins = originsOf(frameOrigins ?? [])
  if (page !== 'view' && events === true) throw wrongField('events', 'events requires the page "view"')
  if (page === 'analytics' || page === 'overview') {
    if (identities === true)
      throw wrongField('identities', 'identities requires the page "view" or "explore"')
    const chosen =
      page === 'analytics' ? panelsOf(panelNames, panels) : panelsOf(overviewPanelNames, panels ?? weekPanels)
    return { page, search, panels: chosen, events: false, identities: false, frameOrigins: origins }
  }
  if (page !== 'view' && page !== 'explore')
    throw wrongField('page', 'page must be "analytics", "explore", "overview" or "view"')
  if (panels !== undefined) throw wrongField('panels', 'panels requires the page "analytics" or "overview"')
  const chosen = { events: events ?? false, identities: identities ?? false }
  return { page, search, panels: [], ...chosen, frameOrigins: origins }
}

/** What changed is shown only where it was chosen. */
const weekPanels = ['headlines', 'timeline']

function panelsOf<P extends string>(names: readonly P[], panels: readonly string[] = names): P[] {
  const knownPanels = names.filter((name) => panels.includes(name))
  if (knownPanels.length === 0 || knownPanels.length !== new Set(panels).size)
    throw wrongField('panels', `panels must be one or more of ${names.join(', ')}`)
  return knownPanels
}

/** Scheme, host and port, and nothing that would end the directive of the policy. */
const originForm = /^https?:\/\/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/

function originsOf(origins: string[]): string[] {
  if (origins.length > limits.shareOriginsMax)
    throw wrongField('frameOrigins', `at most ${limits.shareOriginsMax} sites may show the page`, 'too_many')
  if (!origins.every((origin) => origin.length <= 253 && originForm.test(origin)))
    throw wrongField('frameOrigins', 'frameOrigins must be origins such as https://wiki.example.com')
  return [...new Set(origins)]
}

function nameOf(text: string): string {
  const name = text.trim()
  const problem = nameProblem(name)
  if (problem !== null) throw wrongField('name', `The name ${problem}.`)
  return name
}

export interface ShareOpens {
  note(link: Pick<ShareLink, 'id' | 'orgId'>): void
  /** How often a link was opened since the last `flush`. */
  waiting(id: string): number
  /** Adds the counts to the links, after a flush that is running. What cannot be stored stays for the next time. */
  flush(): Promise<void>
}

/** Counts in memory how often links are opened, so that reading a page writes nothing. */
export function makeShareOpens({ store, clock }: Services, log: Log): ShareOpens {
  let counts = new Map<string, { orgId: string; count: number }>()
  const add = (id: string, orgId: string, count: number): void => {
    counts.set(id, { orgId, count: (counts.get(id)?.count ?? 0) + count })
  }
  const write = async (): Promise<void> => {
    const waiting = counts
    counts = new Map()
    for (const [id, { orgId, count }] of waiting) {
      const now = clock.now()
      const act = { action: 'share_link.opened', target: id, metadata: {} }
      const audit = auditEntry({ orgId, actor: 'system' }, act, now)
      try {
        await store.shareLinks.opened({ orgId, id, count, now, audit })
      } catch (error) {
        add(id, orgId, count)
        log.warn('share_link_count_not_written', { message: String(error) })
      }
    }
  }
  let flushed = Promise.resolve()
  return {
    note: ({ id, orgId }) => add(id, orgId, 1),
    waiting: (id) => counts.get(id)?.count ?? 0,
    flush: () => (flushed = flushed.then(write)),
  }
}
