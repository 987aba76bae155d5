/** Conformance of members, invitations, second factors and identities of other providers. */
import { expect } from 'bun:test'
import type { Invitation, OverviewVisit, Store } from '../../db/contract/store.ts'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import { makeAccount, makeAudit, makeOrg, makeSignIn, noon } from './make.ts'
import { auditOf, failure, writesNothing, writesOnce, type Cases } from './subject.ts'

async function member(store: Store, orgId: string, role: 'owner' | 'viewer' = 'viewer', operator = false) {
  const account = makeAccount({ operator })
  await store.accounts.create({ account, orgId, role, audit: makeAudit(orgId) })
  return account
}

function invitationTo(orgId: string, email: string, fields: Partial<Invitation> = {}): Invitation {
  const token = { id: newId('inv'), hash: sha256Hex(newToken()) }
  return {
    ...token,
    orgId,
    email,
    role: 'analyst',
    invitedBy: 'cli',
    createdAtMs: noon,
    expiresAtMs: noon + 1,
    ...fields,
  }
}

export const memberCases: Cases = {
  async 'a new role ends the sign-ins there, and there alone'({ store, orgId }) {
    const otherOrg = makeOrg()
    const account = await member(store, orgId)
    await store.orgs.create({ org: otherOrg, ownerId: account.id, audit: makeAudit(otherOrg.id) })
    const here = makeSignIn(account.id, orgId)
    const there = makeSignIn(account.id, otherOrg.id)
    for (const signIn of [here, there]) await store.signIns.create({ signIn, audit: makeAudit(orgId) })
    const audit = makeAudit(orgId)
    const command = { orgId, accountId: account.id, role: 'admin' as const, endsShareLinks: false, audit }
    expect(await writesOnce(store, audit, () => store.accounts.setRole(command))).toBe('done')
    expect(await store.signIns.find(here.tokenHash)).toBeNull()
    expect((await store.signIns.find(there.tokenHash))?.role).toBe('owner')
    const memberships = (await store.accounts.find(account.id))?.memberships
    expect(memberships?.find((membership) => membership.orgId === orgId)?.role).toBe('admin')
  },
  async 'memberships stand in the age of their organizations'({ store }) {
    const orgs = [3, 1, 2].map((age) => makeOrg({ createdAtMs: noon - age }))
    for (const org of orgs) await store.orgs.create({ org, audit: makeAudit(org.id) })
    const account = await member(store, orgs[1]!.id)
    for (const org of [orgs[0]!, orgs[2]!]) {
      const invitation = invitationTo(org.id, account.email)
      await store.invitations.create({ invitation, audit: makeAudit(org.id) })
      await store.invitations.accept({ hash: invitation.hash, now: noon, account, auditId: newId('aud') })
    }
    const foundAccount = await store.accounts.find(account.id)
    expect(foundAccount?.memberships.map(({ orgId }) => orgId)).toEqual([
      orgs[0]!.id,
      orgs[2]!.id,
      orgs[1]!.id,
    ])
  },
  async 'the last owner stays owner and member, until there is another'({ store, orgId }) {
    const first = await member(store, orgId, 'owner')
    const demote = {
      orgId,
      accountId: first.id,
      role: 'viewer' as const,
      endsShareLinks: true,
      audit: makeAudit(orgId),
    }
    const remove = { orgId, accountId: first.id, audit: makeAudit(orgId) }
    expect(await writesNothing(store, orgId, () => store.accounts.setRole(demote))).toBe('last_owner')
    expect(await writesNothing(store, orgId, () => store.accounts.removeMember(remove))).toBe('last_owner')
    await member(store, orgId, 'owner')
    expect(await writesOnce(store, remove.audit, () => store.accounts.removeMember(remove))).toBe('done')
    expect((await store.accounts.find(first.id))?.memberships).toEqual([])
  },
  async 'of two owners who remove each other at once one stays'({ store, orgId }) {
    const owners = [await member(store, orgId, 'owner'), await member(store, orgId, 'owner')]
    const removals = owners.map(({ id }) =>
      store.accounts.removeMember({ orgId, accountId: id, audit: makeAudit(orgId) }),
    )
    expect((await Promise.all(removals)).toSorted()).toEqual(['done', 'last_owner'])
  },
  async 'nobody changes who is no member'({ store, orgId }) {
    const command = { orgId, accountId: newId('usr'), audit: makeAudit(orgId) }
    for (const verb of [
      () => store.accounts.removeMember(command),
      () => store.accounts.setRole({ ...command, role: 'owner', endsShareLinks: false }),
      () => store.accounts.setOperator({ ...command, operator: true }),
    ])
      expect((await writesNothing(store, orgId, () => failure(verb()))).kind).toBe('not_found')
  },
}

export const visitCases: Cases = {
  async 'the devices of a member meet in one visit: the newer report counts'({ store, orgId }) {
    const { accounts } = store
    const { id: accountId } = await member(store, orgId)
    const otherAccountId = await member(store, orgId)
    const visit = { sinceMs: noon, atMs: noon + 5, hidden: ['tool a'], shown: ['tool b'] }
    const note = (fields: Partial<OverviewVisit> = {}) =>
      writesNothing(store, orgId, () =>
        accounts.noteOverviewVisit({ orgId, accountId, visit: { ...visit, ...fields } }),
      )
    const storedVisit = () => accounts.overviewVisit({ orgId, accountId })
    expect(await storedVisit()).toBeNull()
    expect(await note()).toEqual(visit)
    const mergedVisit = { ...visit, atMs: noon + 9, hidden: ['tool a', 'ü "x"'], shown: ['tool b', 'tool c'] }
    expect(await note({ atMs: noon + 9, hidden: ['ü "x"'], shown: ['tool c'] })).toEqual(mergedVisit)
    const seenVisit = { sinceMs: noon + 20, atMs: noon + 20, hidden: ['tool b', 'tool c'], shown: [] }
    expect(await note(seenVisit)).toEqual(seenVisit)
    // A page that was open before brings nothing back.
    expect(await note({ atMs: noon + 30 })).toEqual({ ...seenVisit, atMs: noon + 30 })
    expect(await storedVisit()).toEqual({ ...seenVisit, atMs: noon + 30 })
    expect(await accounts.overviewVisit({ orgId, accountId: otherAccountId.id })).toBeNull()
    expect(await accounts.overviewVisit({ orgId: 'org_other', accountId })).toBeNull()
    const toolNames = Array.from({ length: 100 }, (_, n) => `tool ${n}`)
    const { hidden } = await note({ sinceMs: noon + 20, hidden: toolNames })
    expect([hidden.length, hidden.at(-1), hidden.includes('tool b')]).toEqual([100, 'tool 99', false])
    await accounts.noteOverviewVisit({ orgId, accountId: otherAccountId.id, visit })
    const recent = (afterMs: number) => accounts.recentVisits({ afterMs, limit: 2 })
    expect(await recent(noon)).toEqual([{ orgId, sinceMs: noon + 20, atMs: noon + 30 }])
    expect(await recent(noon + 30)).toEqual([])
    await accounts.removeMember({ orgId, accountId, audit: makeAudit(orgId) })
    expect(await storedVisit()).toBeNull()
    expect(await note()).toEqual(visit)
    expect(await storedVisit()).toBeNull() // no member any more
  },
}

export const invitationCases: Cases = {
  async 'an invitation makes its account once, and is told by the transaction'({ store, orgId }) {
    const account = makeAccount()
    const invitation = invitationTo(orgId, account.email)
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () => store.invitations.create({ invitation, audit }))
    expect(await store.invitations.find(invitation.hash)).toEqual(invitation)
    expect(await store.invitations.list(orgId)).toEqual([invitation])
    const accept = { hash: invitation.hash, now: noon, account, auditId: newId('aud') }
    const acceptances = [
      store.invitations.accept(accept),
      store.invitations.accept({ ...accept, auditId: newId('aud') }),
    ]
    expect((await Promise.all(acceptances)).toSorted()).toEqual(['done', 'link_invalid'])
    expect((await store.accounts.find(account.id))?.memberships).toMatchObject([{ orgId, role: 'analyst' }])
    const [newest] = await auditOf(store, orgId)
    expect(newest).toMatchObject({
      action: 'invitation.accepted',
      actor: `user:${account.id}`,
      target: invitation.id,
    })
  },
  async 'an account that is there already becomes a member under its own id'({ store, orgId }) {
    const home = makeOrg()
    await store.orgs.create({ org: home, audit: makeAudit(home.id) })
    const existingMember = await member(store, home.id)
    const invitation = invitationTo(orgId, existingMember.email)
    await store.invitations.create({ invitation, audit: makeAudit(orgId) })
    const account = makeAccount({ email: existingMember.email })
    const accept = { hash: invitation.hash, now: noon, account, auditId: newId('aud') }
    expect(await store.invitations.accept(accept)).toBe('done')
    expect(await store.accounts.find(account.id)).toBeNull()
    expect((await store.accounts.find(existingMember.id))?.memberships.length).toBe(2)
    const again = { invitation: invitationTo(orgId, existingMember.email), audit: makeAudit(orgId) }
    expect((await writesNothing(store, orgId, () => failure(store.invitations.create(again)))).kind).toBe(
      'conflict',
    )
  },
  async 'replaced, revoked, expired and pruned ones are over'({ store, orgId }) {
    const account = makeAccount()
    const first = invitationTo(orgId, account.email)
    const second = invitationTo(orgId, account.email)
    for (const invitation of [first, second])
      await store.invitations.create({ invitation, audit: makeAudit(orgId) })
    expect(await store.invitations.find(first.hash)).toBeNull()
    const late = { hash: second.hash, now: noon + 1, account, auditId: newId('aud') }
    expect(await writesNothing(store, orgId, () => store.invitations.accept(late))).toBe('link_invalid')
    const revoke = { orgId, id: second.id, audit: makeAudit(orgId) }
    const foreign = { ...revoke, orgId: newId('org') }
    expect((await failure(store.invitations.revoke(foreign))).kind).toBe('not_found')
    await writesOnce(store, revoke.audit, () => store.invitations.revoke(revoke))
    await store.invitations.create({
      invitation: invitationTo(orgId, account.email),
      audit: makeAudit(orgId),
    })
    expect(await store.invitations.prune({ now: noon })).toBe(0)
    expect(await store.invitations.prune({ now: noon + 1 })).toBe(1)
  },
}

export const proofCases: Cases = {
  async 'a step and a recovery code sign in once, also when asked twice at once'({ store, orgId }) {
    const account = await member(store, orgId)
    const factor = { accountId: account.id, encryptedSeed: 'v1.x', lastStep: 7, sinceMs: noon }
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () =>
      store.secondFactors.set({ factor, recoveryHashes: ['a', 'b'], audit }),
    )
    expect(await store.secondFactors.find(account.id)).toEqual({ ...factor, recoveryLeft: 2 })
    const enter = (proof: { step: number } | { recoveryHash: string }) =>
      store.signIns.create({ signIn: makeSignIn(account.id, orgId), proof, audit: makeAudit(orgId) })
    for (const proof of [{ step: 7 }, { step: 6 }, { recoveryHash: 'c' }])
      expect(await writesNothing(store, orgId, () => enter(proof))).toBe('used')
    for (const proof of [{ step: 8 }, { recoveryHash: 'a' }])
      expect((await Promise.all([enter(proof), enter(proof)])).toSorted()).toEqual(['done', 'used'])
    expect(await store.secondFactors.find(account.id)).toMatchObject({ lastStep: 8, recoveryLeft: 1 })
  },
  async 'setting it again replaces codes, and taking it away takes them along'({ store, orgId }) {
    const account = await member(store, orgId)
    const factor = { accountId: account.id, encryptedSeed: 'v1.x', lastStep: 0, sinceMs: noon }
    const set = (recoveryHashes: string[]) =>
      store.secondFactors.set({ factor, recoveryHashes, audit: makeAudit(orgId) })
    await set(['a', 'b'])
    await set(['c'])
    expect((await store.secondFactors.find(account.id))?.recoveryLeft).toBe(1)
    const replacement = { accountId: account.id, recoveryHashes: ['d', 'e', 'f'], audit: makeAudit(orgId) }
    await writesOnce(store, replacement.audit, () => store.secondFactors.setRecovery(replacement))
    expect((await store.secondFactors.find(account.id))?.recoveryLeft).toBe(3)
    const remove = { accountId: account.id, audit: makeAudit(orgId) }
    await writesOnce(store, remove.audit, () => store.secondFactors.remove(remove))
    expect(await store.secondFactors.find(account.id)).toBeNull()
    const removeError = await writesNothing(store, orgId, () => failure(store.secondFactors.remove(remove)))
    expect(removeError.kind).toBe('not_found')
  },
  async 'a subject of a provider is known from its first sign-in on'({ store, orgId }) {
    const account = await member(store, orgId)
    const external = { issuer: 'https://id.example', subject: newId('usr') }
    expect(await store.signIns.findExternal(external)).toBeNull()
    for (let i = 0; i < 2; i++)
      await store.signIns.create({ signIn: makeSignIn(account.id, orgId), external, audit: makeAudit(orgId) })
    expect((await store.signIns.findExternal(external))?.id).toBe(account.id)
    expect(await store.signIns.findExternal({ ...external, issuer: 'https://other.example' })).toBeNull()
  },
  async 'sign-ins are listed, ended by id, ended but for one, and moved under a new token'({ store, orgId }) {
    const me = await member(store, orgId)
    const other = await member(store, orgId)
    const ownSignIns = [1, 2, 3].map((n) => makeSignIn(me.id, orgId, { lastSeenAtMs: noon + n }))
    const otherSignIn = makeSignIn(other.id, orgId)
    for (const signIn of [...ownSignIns, otherSignIn])
      await store.signIns.create({ signIn, audit: makeAudit(orgId) })
    expect((await store.signIns.list(me.id)).map(({ id }) => id)).toEqual(
      ownSignIns.map(({ id }) => id).toReversed(),
    )
    const foreign = { accountId: me.id, id: otherSignIn.id, audit: makeAudit(orgId) }
    expect((await writesNothing(store, orgId, () => failure(store.signIns.endById(foreign)))).kind).toBe(
      'not_found',
    )
    const byId = { accountId: me.id, id: ownSignIns[0]!.id, audit: makeAudit(orgId) }
    await writesOnce(store, byId.audit, () => store.signIns.endById(byId))
    const endOthers = {
      accountId: me.id,
      keepTokenHash: ownSignIns[2]!.tokenHash,
      audit: makeAudit(orgId, { metadata: {} }),
    }
    expect(await store.signIns.endOthers(endOthers)).toBe(1)
    const again = { ...endOthers, audit: makeAudit(orgId) }
    expect(await writesNothing(store, orgId, () => store.signIns.endOthers(again))).toBe(0)
    const second = makeOrg()
    await store.orgs.create({ org: second, ownerId: me.id, audit: makeAudit(second.id) })
    const newTokenHash = sha256Hex(newToken())
    const move = {
      tokenHash: ownSignIns[2]!.tokenHash,
      newTokenHash,
      orgId: second.id,
      audit: makeAudit(second.id),
    }
    await writesOnce(store, move.audit, () => store.signIns.switchOrg(move))
    expect(await store.signIns.find(ownSignIns[2]!.tokenHash)).toBeNull()
    expect(await store.signIns.find(newTokenHash)).toMatchObject({ role: 'owner', org: { id: second.id } })
    const stranger = {
      ...move,
      tokenHash: otherSignIn.tokenHash,
      newTokenHash: 'x',
      audit: makeAudit(second.id),
    }
    expect((await failure(store.signIns.switchOrg(stranger))).kind).toBe('not_found')
    expect((await store.signIns.list(other.id)).length).toBe(1)
  },
}
