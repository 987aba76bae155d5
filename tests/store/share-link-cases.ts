/** Conformance of share links: found by their hash, revoked once, counted, limited, deleted after their end. */
import { expect } from 'bun:test'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import type { NewShareLink } from '../../db/contract/share-links.ts'
import { makeAudit, noon } from './make.ts'
import { auditOf, failure, writesNothing, writesOnce, type Cases } from './subject.ts'

const dayMs = 86_400_000

function makeLink(orgId: string, more: Partial<NewShareLink> = {}): NewShareLink {
  return {
    ...{ id: newId('shr'), orgId, tokenHash: sha256Hex(newToken()), name: 'Weekly', content: '{"a":"ü"}' },
    ...{ createdBy: 'usr_1', createdAtMs: noon, expiresAtMs: noon + dayMs },
    ...more,
  }
}

const unopened = { revokedAtMs: null, opened: 0, lastOpenedAtMs: null }

export const shareLinkCases: Cases = {
  async 'a link is found by its hash and listed newest first, with one entry'({ store, orgId }) {
    const [first, second] = [makeLink(orgId), makeLink(orgId, { createdAtMs: noon + 1 })]
    for (const link of [first, second]) {
      const audit = makeAudit(orgId, { action: 'share_link.created' })
      const command = { link, linksMax: 9, endedBeforeMs: 0, audit }
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
      store.shareLinks.create({ link, linksMax: 2, endedBeforeMs, audit: makeAudit(orgId) })
    const [old, revoked, last] = [
      makeLink(orgId),
      makeLink(orgId, { expiresAtMs: noon + 99 * dayMs }),
      makeLink(orgId),
    ]
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
    const link = makeLink(orgId)
    await store.shareLinks.create({ link, linksMax: 9, endedBeforeMs: 0, audit: makeAudit(orgId) })
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
    const found = await store.shareLinks.find(link.tokenHash)
    expect([found?.opened, found?.lastOpenedAtMs]).toEqual([6, noon + 1 + 3_600_000])
    const revoke = (of: string) =>
      store.shareLinks.revoke({
        orgId: of,
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
}
