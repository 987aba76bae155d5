/** Conformance of deleting organizations, sites, saved views, keys in use, and searching audit entries. */
import { expect } from 'bun:test'
import { makeAccount, makeAudit, makeBatch, makeEvent, makeKey, makeOrg, makeSignIn, noon } from './make.ts'
import { auditOf, failure, writesNothing, writesOnce, type Cases } from './subject.ts'

export const orgEndCases: Cases = {
  async 'an organization is renamed, and one that is not there is not'({ store, orgId }) {
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () => store.orgs.rename({ orgId, name: 'Other', audit }))
    expect((await store.orgs.find(orgId))?.name).toBe('Other')
    const nowhere = { orgId: 'org_none', name: 'x', audit: makeAudit(orgId) }
    expect((await writesNothing(store, orgId, () => failure(store.orgs.rename(nowhere)))).kind).toBe(
      'not_found',
    )
  },
  async 'removal needs asking and time; nothing is left but the chain, and others are untouched'({
    store,
    orgId,
  }) {
    const keptOrg = makeOrg()
    await store.orgs.create({ org: keptOrg, audit: makeAudit(keptOrg.id) })
    const account = makeAccount()
    await store.accounts.create({ account, orgId, role: 'owner', audit: makeAudit(orgId) })
    const signIn = makeSignIn(account.id, orgId)
    await store.signIns.create({ signIn, audit: makeAudit(orgId) })
    const key = makeKey(orgId)
    const other = makeKey(keptOrg.id)
    for (const apiKey of [key, other])
      await store.keys.create({ key: apiKey, audit: makeAudit(apiKey.orgId) })
    for (const id of [orgId, keptOrg.id])
      await store.events.append(makeBatch(id, [makeEvent('e1'), makeEvent('e2')]))
    const site = { siteId: 'shop-acme', name: 'Shop', hidden: false, restricted: true, hosts: [] }
    await store.sites.change({ orgId, site, audit: makeAudit(orgId) })
    const remove = { orgId, now: noon + 10, audit: makeAudit(keptOrg.id) }
    const refused = () => writesNothing(store, keptOrg.id, () => failure(store.orgs.remove(remove)))
    expect((await refused()).kind).toBe('conflict')
    const removal = { orgId, askedAtMs: noon, dueAtMs: noon + 11, audit: makeAudit(orgId) }
    await writesOnce(store, removal.audit, () => store.orgs.requestDeletion(removal))
    expect((await failure(store.orgs.requestDeletion({ ...removal, audit: makeAudit(orgId) }))).kind).toBe(
      'conflict',
    )
    expect(await store.orgs.deletions()).toContainEqual({ orgId, askedAtMs: noon, dueAtMs: noon + 11 })
    expect((await refused()).kind).toBe('conflict')
    const keep = { orgId, now: noon + 10, audit: makeAudit(orgId) }
    await writesOnce(store, keep.audit, () => store.orgs.cancelDeletion(keep))
    expect((await failure(store.orgs.cancelDeletion({ ...keep, audit: makeAudit(orgId) }))).kind).toBe(
      'conflict',
    )
    await store.orgs.requestDeletion({ ...removal, dueAtMs: noon + 10, audit: makeAudit(orgId) })
    const chain = (await auditOf(store, orgId)).length
    await writesOnce(store, remove.audit, () => store.orgs.remove(remove))
    expect(await store.orgs.find(orgId)).toBeNull()
    expect(await store.keys.findByHash(key.hash)).toBeNull()
    expect(await store.signIns.find(signIn.tokenHash)).toBeNull()
    expect((await store.accounts.find(account.id))?.memberships).toEqual([])
    expect((await store.events.overview(orgId)).total).toBe(0)
    expect(await store.sites.list(orgId)).toEqual([])
    expect((await auditOf(store, orgId)).length).toBe(chain)
    expect((await store.events.overview(keptOrg.id)).total).toBe(2)
    expect(await store.keys.findByHash(other.hash)).toEqual(other)
    expect((await store.audit.verify([])).faults).toEqual([])
  },
}

export const siteCases: Cases = {
  async 'a site is there with its first event or its first choice, and restriction is known at once'({
    store,
    orgId,
  }) {
    expect(await store.sites.list(orgId)).toEqual([])
    await store.events.append(makeBatch(orgId, [makeEvent('e1', { siteId: 'b' })]))
    const hosts = ['shop.example', 'shop.example:8443']
    const chosen = { siteId: 'a', name: 'The first', hidden: true, restricted: true, hosts }
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () => store.sites.change({ orgId, site: chosen, audit }))
    expect(await store.sites.list(orgId)).toEqual([
      { ...chosen, seen: false },
      { siteId: 'b', name: null, hidden: false, restricted: false, hosts: [], seen: true },
    ])
    expect([...(await store.sites.restricted(orgId))]).toEqual(['a'])
    expect((await store.sites.restricted('org_none')).size).toBe(0)
    const freed = { ...chosen, restricted: false }
    await store.sites.change({ orgId, site: freed, audit: makeAudit(orgId) })
    expect((await store.sites.restricted(orgId)).size).toBe(0)
  },
}

export const keyInUseCases: Cases = {
  async 'settings change in memory and on disk, and a revoked key changes no more'({ store, orgId }) {
    const key = makeKey(orgId)
    await store.keys.create({ key, audit: makeAudit(orgId) })
    const settings = { label: 'other', scopes: [], siteIds: ['a'], behindProxy: true, expiresAtMs: noon + 9 }
    const command = { orgId, keyId: key.id, settings, audit: makeAudit(orgId) }
    await writesOnce(store, command.audit, () => store.keys.change(command))
    expect(await store.keys.findByHash(key.hash)).toEqual({ ...key, ...settings })
    expect(await store.keys.list({ orgId })).toEqual([{ ...key, ...settings }])
    const foreign = { ...command, orgId: 'org_none', audit: makeAudit(orgId) }
    expect((await failure(store.keys.change(foreign))).kind).toBe('not_found')
    await store.keys.revoke({ orgId, keyId: key.id, now: noon, audit: makeAudit(orgId) })
    const late = { ...command, audit: makeAudit(orgId) }
    expect((await writesNothing(store, orgId, () => failure(store.keys.change(late)))).kind).toBe('conflict')
  },
  async 'a rotated key and its successor live side by side until the sooner end'({ store, orgId }) {
    const old = makeKey(orgId, { expiresAtMs: noon + 50 })
    const successor = makeKey(orgId)
    await store.keys.create({ key: old, audit: makeAudit(orgId) })
    const command = { orgId, keyId: old.id, successor, oldEndsAtMs: noon + 90, audit: makeAudit(orgId) }
    await writesOnce(store, command.audit, () => store.keys.rotate(command))
    expect((await store.keys.findByHash(old.hash))?.expiresAtMs).toBe(noon + 50)
    expect(await store.keys.findByHash(successor.hash)).toEqual(successor)
    const again = { ...command, successor: makeKey(orgId), oldEndsAtMs: noon + 5, audit: makeAudit(orgId) }
    await store.keys.rotate(again)
    expect((await store.keys.findByHash(old.hash))?.expiresAtMs).toBe(noon + 5)
    const listed = (await store.keys.list({ orgId })).find(({ id }) => id === old.id)
    expect(listed?.expiresAtMs).toBe(noon + 5)
  },
}

export const auditSearchCases: Cases = {
  async 'entries are found by who, what, when, on what and any text, page by page'({ store, orgId }) {
    const entries = Array.from({ length: 12 }, (_, n) =>
      makeAudit(orgId, {
        actor: n % 2 === 0 ? 'cli' : 'user:usr_a',
        action: n % 3 === 0 ? 'key.made' : 'keys.made',
        target: `thing_${n}`,
        metadata: { label: n === 5 ? '50% Ödön_x' : 'plain' },
        occurredAtMs: noon + n * 1_000,
      }),
    )
    const countBefore = (await auditOf(store, orgId)).length
    for (const entry of entries) await store.audit.append(entry)
    const find = async (filter: Parameters<typeof store.audit.list>[0]['filter']): Promise<number[]> => {
      const positions: number[] = []
      let beforeSeq: number | null = null
      do {
        const page: Awaited<ReturnType<typeof store.audit.list>> = await store.audit.list({
          orgId,
          limit: 2,
          beforeSeq,
          ...(filter === undefined ? {} : { filter }),
        })
        positions.push(...page.entries.map(({ target }) => Number(target.slice(6))))
        beforeSeq = page.next
      } while (beforeSeq !== null)
      return positions.filter((n) => entries.some(({ target }) => target === `thing_${n}`))
    }
    expect(await find({ actors: ['cli'], actions: ['key.*'] })).toEqual([6, 0])
    expect(await find({ actions: ['key.*', 'keys.made'], targets: ['thing_7', 'thing_9'] })).toEqual([9, 7])
    expect(
      await find({ sinceMs: noon + 3_000, untilMs: noon + 5_000, actors: ['cli', 'user:usr_a'] }),
    ).toEqual([4, 3])
    expect(await find({ text: '50% ' })).toEqual([5])
    expect(await find({ text: '_X' })).toEqual([5])
    expect(await find({ text: 'THING_11' })).toEqual([11])
    const rows = await store.audit.rows({ orgId, afterSeq: countBefore + 9, limit: 2 })
    expect(rows.map(({ target, position }) => [target, Number(position)])).toEqual([
      ['thing_9', countBefore + 10],
      ['thing_10', countBefore + 11],
    ])
    expect((await store.audit.heads())[orgId]?.count).toBe(countBefore + 12)
  },
}

export const viewCases: Cases = {
  async 'names are ordered by their bytes, in any language of the database'({ store, orgId }) {
    for (const [index, name] of ['b', 'a-b', 'ä', 'ab', 'B', 'Z', 'a'].entries()) {
      const view = { id: `${orgId}${index}`, orgId, name, search: '', createdBy: 'usr_1', createdAtMs: noon }
      await store.views.create({ view, viewsMax: 10, audit: makeAudit(orgId) })
    }
    const names = (await store.views.list(orgId)).map(({ name }) => name)
    expect(names).toEqual(['B', 'Z', 'a', 'a-b', 'ab', 'b', 'ä'])
  },
  async 'views are shared by name, changed and removed with an entry each; a limit holds'({ store, orgId }) {
    const view = (id: string, name: string) => ({
      id: `${orgId}${id}`,
      orgId,
      name,
      search: `?q=${id}`,
      createdBy: 'usr_1',
      createdAtMs: noon,
    })
    const create = (savedView: ReturnType<typeof view>, viewsMax = 3) =>
      store.views.create({ view: savedView, viewsMax, audit: makeAudit(orgId) })
    expect(await store.views.list(orgId)).toEqual([])
    const b = view('1', 'b')
    const a = view('2', 'a')
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () => store.views.create({ view: b, viewsMax: 3, audit }))
    await create(a)
    expect(await store.views.list(orgId)).toEqual([a, b])
    const conflict = async (work: () => Promise<void>) =>
      (await writesNothing(store, orgId, () => failure(work()))).kind
    expect(await conflict(() => create(view('3', 'a')))).toBe('conflict')
    expect(await conflict(() => create(view('3', 'c'), 2))).toBe('conflict')
    const change = (id: string, name: string, org = orgId) =>
      store.views.change({ orgId: org, id, name, search: '', audit: makeAudit(org) })
    expect(await conflict(() => change(a.id, 'b'))).toBe('conflict')
    expect(await conflict(() => change('view_none', 'z'))).toBe('not_found')
    await change(a.id, 'a')
    await change(b.id, 'z')
    expect((await store.views.list(orgId)).map(({ name, search }) => [name, search])).toEqual([
      ['a', ''],
      ['z', ''],
    ])
    const otherOrg = makeOrg()
    await store.orgs.create({ org: otherOrg, audit: makeAudit(otherOrg.id) })
    expect((await failure(change(a.id, 'mine', otherOrg.id))).kind).toBe('not_found')
    const remove = (id: string) => store.views.remove({ orgId, id, audit: makeAudit(orgId) })
    await remove(a.id)
    expect(await conflict(() => remove(a.id))).toBe('not_found')
    expect(await store.views.list(orgId)).toHaveLength(1)
  },
}
