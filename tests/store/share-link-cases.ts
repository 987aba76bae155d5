/** Conformance of share links: found by their hash, revoked once, counted, limited, deleted after their end. */
import { expect } from 'bun:test'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import type { NewShareLink } from '../../db/contract/share-links.ts'
import type { Role, Store } from '../../db/contract/store.ts'
import { makeAccount, makeAudit, noon } from './make.ts'
import { auditOf, failure, writesNothing, writesOnce, type Cases } from './subject.ts'

const dayMs = 86_400_000

function makeLink(orgId: string, createdBy: string, fields: Partial<NewShareLink> = {}): NewShareLink {
  return {
    id: newId('shr'),
    orgId,
    tokenHash: sha256Hex(newToken()),
    name: 'Weekly',
    content: '{"a":"ü"}',
    createdBy,
    createdAtMs: noon,
    expiresAtMs: noon + dayMs,
    ...fields,
  }
}

async function member(store: Store, orgId: string, role: Role = 'admin'): Promise<string> {
  const account = makeAccount()
  await store.accounts.create({ account, orgId, role, audit: makeAudit(orgId) })
  return account.id
}

const roles = ['owner', 'admin'] as const

const unopened = { revokedAtMs: null, opened: 0, lastOpenedAtMs: null }

export const shareLinkCases: Cases = {
  async 'a link is found by its hash and listed newest first, with one entry'({ store, orgId }) {
    const creatorId = await member(store, orgId)
    const first = makeLink(orgId, creatorId)
    const second = makeLink(orgId, creatorId, { createdAtMs: noon + 1 })
    for (const link of [first, second]) {
      const audit = makeAudit(orgId, { action: 'share_link.created' })
      const command = { link, roles, linksMax: 9, endedBeforeMs: 0, audit }
      await writesOnce(store, audit, () => store.shareLinks.create(command))
    }
    expect(await store.shareLinks.find(first.tokenHash)).toEqual({ ...first, ...unopened })
    expect(await store.shareLinks.find(sha256Hex('other'))).toBeNull()
    expect(await store.shareLinks.list(orgId)).toEqual(
      [second, first].map((link) => ({ ...link, ...unopened })),
    )
    expect(await store.shareLinks.list('org_other')).toEqual([])
  },
  async 'the limit counts links that are left; those that ended long ago are deleted'({ store, orgId }) {
    const create = (link: NewShareLink, endedBeforeMs: number) =>
      store.shareLinks.create({ link, roles, linksMax: 2, endedBeforeMs, audit: makeAudit(orgId) })
    const creatorId = await member(store, orgId)
    const old = makeLink(orgId, creatorId)
    const revoked = makeLink(orgId, creatorId, { expiresAtMs: noon + 99 * dayMs })
    const last = makeLink(orgId, creatorId)
    await create(old, 0)
    await create(revoked, 0)
    const refused = await writesNothing(store, orgId, () => failure(create(last, noon)))
    expect(refused.kind).toBe('conflict')
    await store.shareLinks.revoke({ orgId, id: revoked.id, now: noon + 5, audit: makeAudit(orgId) })
    await create(last, noon + 10)
    expect((await store.shareLinks.list(orgId)).map(({ id }) => id).toSorted()).toEqual(
      [old.id, last.id].toSorted(),
    )
  },
  async 'a link is revoked once, by its organization, and the entry has its count'({ store, orgId }) {
    const link = makeLink(orgId, await member(store, orgId))
    await store.shareLinks.create({ link, roles, linksMax: 9, endedBeforeMs: 0, audit: makeAudit(orgId) })
    const open = (count: number, now: number) =>
      store.shareLinks.opened({
        orgId,
        id: link.id,
        count,
        now,
        audit: makeAudit(orgId, { action: 'opened' }),
      })
    expect(await open(2, noon + 1)).toEqual({ isAudited: true })
    expect(await writesNothing(store, orgId, () => open(3, noon + 2))).toEqual({ isAudited: false })
    expect(await open(1, noon + 1 + 3_600_000)).toEqual({ isAudited: true })
    const entries = await auditOf(store, orgId)
    const opened = entries.filter(({ action }) => action === 'opened').map(({ metadata }) => metadata)
    expect(opened).toEqual(
      expect.arrayContaining([
        { opened: 2, inAll: 2 },
        { opened: 4, inAll: 6 },
      ]),
    )
    const storedLink = await store.shareLinks.find(link.tokenHash)
    expect([storedLink?.opened, storedLink?.lastOpenedAtMs]).toEqual([6, noon + 1 + 3_600_000])
    const revoke = (targetOrgId: string) =>
      store.shareLinks.revoke({
        orgId: targetOrgId,
        id: link.id,
        now: noon + 9,
        audit: makeAudit(orgId, { action: 'gone' }),
      })
    expect((await writesNothing(store, orgId, () => failure(revoke('org_other')))).kind).toBe('not_found')
    expect(await revoke(orgId)).toEqual({ opened: 6 })
    expect((await auditOf(store, orgId)).find(({ action }) => action === 'gone')?.metadata).toMatchObject({
      opened: 6,
    })
    expect((await writesNothing(store, orgId, () => failure(revoke(orgId)))).kind).toBe('conflict')
    expect((await store.shareLinks.find(link.tokenHash))?.revokedAtMs).toBe(noon + 9)
    expect(
      await store.shareLinks.opened({ orgId, id: 'shr_gone', count: 1, now: noon, audit: makeAudit(orgId) }),
    ).toEqual({
      isAudited: false,
    })
  },
  async 'links end with the right of their creator to share, in the same entry'({ store, orgId }) {
    const leaver = await member(store, orgId)
    const demoted = await member(store, orgId)
    const other = await member(store, orgId, 'owner')
    const create = async (creatorId: string, fields: Partial<NewShareLink> = {}) => {
      const link = makeLink(orgId, creatorId, { expiresAtMs: noon + 9 * dayMs, ...fields })
      await store.shareLinks.create({
        link,
        roles,
        linksMax: 99,
        endedBeforeMs: 0,
        audit: makeAudit(orgId),
      })
      return link
    }
    const links = [await create(leaver), await create(leaver), await create(demoted), await create(other)]
    const expired = await create(leaver, { expiresAtMs: noon + 1 })
    const memberChange = (accountId: string, offsetMs = 0) => ({
      orgId,
      accountId,
      audit: makeAudit(orgId, { occurredAtMs: noon + dayMs + offsetMs }),
    })
    const removal = memberChange(leaver)
    const promotion = memberChange(demoted, 1)
    const demotion = memberChange(demoted, 2)
    const states = async () =>
      Promise.all(links.map(async ({ tokenHash }) => (await store.shareLinks.find(tokenHash))!.revokedAtMs))
    await writesOnce(store, promotion.audit, () =>
      store.accounts.setRole({ ...promotion, role: 'owner', endsShareLinks: false }),
    )
    expect(await states()).toEqual([null, null, null, null])
    const ended = async (audit: typeof removal.audit) =>
      (await auditOf(store, orgId)).find(({ id }) => id === audit.id)!.metadata['shareLinksEnded']
    expect(await store.accounts.removeMember(removal)).toBe('done')
    const demote = { ...demotion, role: 'analyst' as const, endsShareLinks: true }
    expect(await store.accounts.setRole(demote)).toBe('done')
    expect(await states()).toEqual([noon + dayMs, noon + dayMs, noon + dayMs + 2, null])
    expect([await ended(removal.audit), await ended(demotion.audit)]).toEqual([2, 1])
    expect((await store.shareLinks.find(expired.tokenHash))!.revokedAtMs).toBeNull()
    for (const creatorId of [leaver, demoted, 'usr_none'])
      expect((await writesNothing(store, orgId, () => failure(create(creatorId)))).kind).toBe('not_found')
  },
}
