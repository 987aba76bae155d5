/** Conformance of organizations, accounts and one-time links. */
import { expect } from 'bun:test'
import type { OneTimeLink } from '../../db/contract/store.ts'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAccount, makeAudit, makeOrg, makeSignIn, noon } from './make.ts'
import { auditOf, failure, writesNothing, writesOnce, type Cases } from './subject.ts'

export const orgCases: Cases = {
  async 'a sign-in rule is off until it is changed, with an entry each time'({ store, orgId }) {
    expect(await store.orgs.signInRule(orgId)).toEqual({ secondFactorRequired: false })
    for (const secondFactorRequired of [true, false, true]) {
      const command = { orgId, rule: { secondFactorRequired }, audit: makeAudit(orgId) }
      await writesOnce(store, command.audit, () => store.orgs.changeSignInRule(command))
      expect(await store.orgs.signInRule(orgId)).toEqual({ secondFactorRequired })
    }
  },
  async 'an organization is found by id and by slug, and listed'({ store }) {
    const org = makeOrg()
    const audit = makeAudit(org.id)
    await writesOnce(store, audit, () => store.orgs.create({ org, audit }))
    expect(await store.orgs.find(org.id)).toEqual(org)
    expect(await store.orgs.find(org.slug)).toEqual(org)
    expect(await store.orgs.list()).toContainEqual(org)
    expect(await store.orgs.find('nobody')).toBeNull()
  },
  async 'a slug is taken once, and the refused organization leaves no audit entry'({ store }) {
    const org = makeOrg()
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    const rival = makeOrg({ slug: org.slug })
    const error = await writesNothing(store, rival.id, () =>
      failure(store.orgs.create({ org: rival, audit: makeAudit(rival.id) })),
    )
    expect(error.kind).toBe('conflict')
    expect(await store.orgs.find(rival.id)).toBeNull()
  },
  async 'an id wins over an equal slug'({ store }) {
    const first = makeOrg()
    const second = makeOrg({ slug: first.id })
    await store.orgs.create({ org: second, audit: makeAudit(second.id) })
    await store.orgs.create({ org: first, audit: makeAudit(first.id) })
    expect(await store.orgs.find(first.id)).toEqual(first)
  },
}

export const accountCases: Cases = {
  async 'an account is found by e-mail and listed with its memberships'({ store, orgId }) {
    const account = makeAccount({ operator: true })
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () => store.accounts.create({ account, orgId, role: 'analyst', audit }))
    expect(await store.accounts.findByEmail(account.email)).toEqual(account)
    expect(await store.accounts.findByEmail('nobody@example.org')).toBeNull()
    const memberships = [{ accountId: account.id, orgId, role: 'analyst' as const }]
    expect(await store.accounts.list()).toContainEqual({ ...account, memberships })
  },
  async 'an e-mail address is taken once'({ store, orgId }) {
    const account = makeAccount()
    await store.accounts.create({ account, orgId, role: 'viewer', audit: makeAudit(orgId) })
    const rival = makeAccount({ email: account.email })
    const error = await writesNothing(store, orgId, () =>
      failure(store.accounts.create({ account: rival, orgId, role: 'owner', audit: makeAudit(orgId) })),
    )
    expect(error.kind).toBe('conflict')
    expect(await store.accounts.findByEmail(account.email)).toEqual(account)
  },
  async 'an account needs an organization that exists, and nothing of it stays otherwise'({ store }) {
    const account = makeAccount()
    const orgId = newId('org')
    const error = await writesNothing(store, orgId, () =>
      failure(store.accounts.create({ account, orgId, role: 'owner', audit: makeAudit(orgId) })),
    )
    expect(error.kind).toBe('not_found')
    expect(await store.accounts.findByEmail(account.email)).toBeNull()
  },
  async 'a new password ends the sign-ins of that account alone'({ store, orgId }) {
    const mine = makeAccount()
    const other = makeAccount()
    const signIns = [makeSignIn(mine.id, orgId), makeSignIn(mine.id, orgId), makeSignIn(other.id, orgId)]
    for (const account of [mine, other]) {
      await store.accounts.create({ account, orgId, role: 'admin', audit: makeAudit(orgId) })
    }
    for (const signIn of signIns) await store.signIns.create({ signIn, audit: makeAudit(orgId) })
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () =>
      store.accounts.setPassword({ accountId: mine.id, passwordHash: '$argon2id$two', audit }),
    )
    expect((await store.accounts.findByEmail(mine.email))?.passwordHash).toBe('$argon2id$two')
    const signInViews = await Promise.all(signIns.map((signIn) => store.signIns.find(signIn.tokenHash)))
    expect(signInViews.map((view) => view !== null)).toEqual([false, false, true])
  },
  async 'the password of nobody is not_found'({ store, orgId }) {
    const command = { accountId: newId('usr'), passwordHash: 'x', audit: makeAudit(orgId) }
    const error = await writesNothing(store, orgId, () => failure(store.accounts.setPassword(command)))
    expect(error.kind).toBe('not_found')
  },
}

function setupLink(expiresAtMs: number): OneTimeLink {
  return { hash: sha256Hex(newToken()), purpose: 'setup', accountId: null, expiresAtMs }
}

export const firstOwnerCases: Cases = {
  async 'of 50 claims at once with one link exactly one wins'({ open }) {
    using dir = tempDir()
    const store = await open(dir.path)
    const org = makeOrg()
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    const link = setupLink(noon + 1)
    await store.accounts.createLink({ link, audit: null })
    expect(await store.accounts.ownerExists()).toBe(false)
    const claims = Array.from({ length: 50 }, () =>
      store.accounts.createFirstOwner({
        account: makeAccount(),
        orgId: org.id,
        linkHash: link.hash,
        now: noon,
        audit: makeAudit(org.id, { action: 'owner.created' }),
      }),
    )
    const results = await Promise.all(claims)
    expect(results.filter((result) => result === 'created').length).toBe(1)
    expect(results.filter((result) => result === 'owner_exists').length).toBe(49)
    expect(await store.accounts.ownerExists()).toBe(true)
    const accounts = await store.accounts.list()
    expect(accounts.map((account) => account.memberships.map(({ role }) => role))).toEqual([['owner']])
    const entries = await auditOf(store, org.id)
    expect(entries.filter((entry) => entry.action === 'owner.created').length).toBe(1)
    await store.close()
  },
  async 'a link that is unknown, expired, replaced or for another purpose makes no owner'({ open }) {
    using dir = tempDir()
    const store = await open(dir.path)
    const org = makeOrg()
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    const replaced = setupLink(noon + 1)
    const expired = setupLink(noon)
    await store.accounts.createLink({ link: replaced, audit: null })
    await store.accounts.createLink({ link: expired, audit: null })
    const account = makeAccount()
    await store.accounts.create({ account, orgId: org.id, role: 'viewer', audit: makeAudit(org.id) })
    const password = { hash: sha256Hex(newToken()), purpose: 'password' as const, accountId: account.id }
    await store.accounts.createLink({ link: { ...password, expiresAtMs: noon + 1 }, audit: null })
    for (const linkHash of [sha256Hex('unknown'), replaced.hash, expired.hash, password.hash]) {
      const claim = { account: makeAccount(), orgId: org.id, linkHash, now: noon, audit: makeAudit(org.id) }
      const result = await writesNothing(store, org.id, () => store.accounts.createFirstOwner(claim))
      expect(result).toBe('link_invalid')
    }
    expect(await store.accounts.ownerExists()).toBe(false)
    await store.close()
  },
  async 'without a link the first owner is made once'({ open }) {
    using dir = tempDir()
    const store = await open(dir.path)
    const org = makeOrg()
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    const claim = () => ({
      account: makeAccount(),
      orgId: org.id,
      linkHash: null,
      now: noon,
      audit: makeAudit(org.id),
    })
    expect(await store.accounts.createFirstOwner(claim())).toBe('created')
    expect(await writesNothing(store, org.id, () => store.accounts.createFirstOwner(claim()))).toBe(
      'owner_exists',
    )
    await store.close()
  },
}

export const passwordLinkCases: Cases = {
  async 'the networks of an account: remembered by a sign-in, twenty at most, one after a reset'({
    store,
    orgId,
  }) {
    const account = makeAccount()
    const otherAccount = makeAccount()
    for (const member of [account, otherAccount])
      await store.accounts.create({ account: member, orgId, role: 'admin', audit: makeAudit(orgId) })
    const begin = (network: string, createdAtMs: number) =>
      store.signIns.create({
        signIn: { ...makeSignIn(account.id, orgId), createdAtMs },
        network,
        audit: makeAudit(orgId),
      })
    for (let index = 0; index < 22; index++) await begin(`203.0.113.${index}`, noon + index)
    const knows = (network: string, accountId = account.id, sinceMs = 0) =>
      store.signIns.knowsNetwork({ accountId, network, sinceMs })
    expect(
      await Promise.all(['203.0.113.1', '203.0.113.2', '203.0.113.21'].map((network) => knows(network))),
    ).toEqual([false, true, true])
    expect(await knows('203.0.113.21', otherAccount.id)).toBe(false)
    expect(await knows('203.0.113.21', account.id, noon + 21)).toBe(false)
    await store.signIns.prune({ now: 0, idleMs: 0, networksBeforeMs: noon + 21 })
    expect([await knows('203.0.113.20'), await knows('203.0.113.21')]).toEqual([false, true])
    const hash = sha256Hex(newToken())
    const link = { hash, purpose: 'password' as const, accountId: account.id, expiresAtMs: noon + 1 }
    await store.accounts.createLink({ link, audit: null })
    expect(await store.accounts.findLink({ hash, now: noon })).toEqual(link)
    expect(await store.accounts.findLink({ hash, now: noon + 1 })).toBeNull()
    const reset = { linkHash: hash, passwordHash: 'new', now: noon, network: '2001:db8::/64' }
    await store.accounts.resetPassword({ ...reset, auditId: newId('aud') })
    expect([await knows('203.0.113.21'), await knows('2001:db8::/64')]).toEqual([false, true])
  },
  async 'a sign-in by a password that was changed meanwhile is not begun'({ store, orgId }) {
    const account = makeAccount()
    await store.accounts.create({ account, orgId, role: 'admin', audit: makeAudit(orgId) })
    const signIn = makeSignIn(account.id, orgId)
    const begin = (passwordHash: string) =>
      store.signIns.create({ signIn, passwordHash, audit: makeAudit(orgId) })
    expect(await writesNothing(store, orgId, () => begin('$argon2id$old'))).toBe('stale')
    expect(await begin(account.passwordHash)).toBe('done')
  },
  async 'a password link works once, ends the sign-ins, and is audited'({ store, orgId }) {
    const account = makeAccount()
    const signIn = makeSignIn(account.id, orgId)
    await store.accounts.create({ account, orgId, role: 'admin', audit: makeAudit(orgId) })
    await store.signIns.create({ signIn, audit: makeAudit(orgId) })
    const linkHash = sha256Hex(newToken())
    const link = {
      hash: linkHash,
      purpose: 'password' as const,
      accountId: account.id,
      expiresAtMs: noon + 1,
    }
    const auditEntry = makeAudit(orgId)
    await writesOnce(store, auditEntry, () => store.accounts.createLink({ link, audit: auditEntry }))
    const reset = { linkHash, passwordHash: '$argon2id$new', now: noon, auditId: newId('aud') }
    expect(await store.accounts.resetPassword(reset)).toBe('done')
    expect((await store.accounts.findByEmail(account.email))?.passwordHash).toBe('$argon2id$new')
    expect(await store.signIns.find(signIn.tokenHash)).toBeNull()
    const [newest] = await auditOf(store, orgId)
    expect(newest).toMatchObject({ id: reset.auditId, target: account.id, actor: `user:${account.id}` })
    const again = { ...reset, auditId: newId('aud') }
    expect(await writesNothing(store, orgId, () => store.accounts.resetPassword(again))).toBe('link_invalid')
  },
  async 'an expired or replaced password link changes nothing'({ store, orgId }) {
    const account = makeAccount()
    await store.accounts.create({ account, orgId, role: 'admin', audit: makeAudit(orgId) })
    const link = (expiresAtMs: number): OneTimeLink => ({
      hash: sha256Hex(newToken()),
      purpose: 'password',
      accountId: account.id,
      expiresAtMs,
    })
    const replaced = link(noon + 1)
    const expired = link(noon)
    await store.accounts.createLink({ link: replaced, audit: null })
    await store.accounts.createLink({ link: expired, audit: null })
    for (const { hash } of [replaced, expired]) {
      const reset = { linkHash: hash, passwordHash: 'other', now: noon, auditId: newId('aud') }
      expect(await writesNothing(store, orgId, () => store.accounts.resetPassword(reset))).toBe(
        'link_invalid',
      )
    }
    expect((await store.accounts.findByEmail(account.email))?.passwordHash).toBe(account.passwordHash)
  },
}
