/** Conformance of sign-ins and keys. */
import { expect } from 'bun:test'
import type { Account, Store } from '../../db/contract/store.ts'
import { newId, sha256Hex } from '../../server/ids.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAccount, makeAudit, makeKey, makeOrg, makeSignIn, noon } from './make.ts'
import { failure, writesNothing, writesOnce, type Cases } from './subject.ts'

async function member(store: Store, orgId: string): Promise<Account> {
  const account = makeAccount()
  await store.accounts.create({ account, orgId, role: 'admin', audit: makeAudit(orgId) })
  return account
}

export const signInCases: Cases = {
  async 'a sign-in is found with its account, role and organization until it ends'({ store, orgId }) {
    const account = await member(store, orgId)
    const signIn = makeSignIn(account.id, orgId)
    const created = makeAudit(orgId)
    await writesOnce(store, created, () => store.signIns.create({ signIn, audit: created }))
    const view = await store.signIns.find(signIn.tokenHash)
    expect(view).toMatchObject({ signIn, account, role: 'admin', org: { id: orgId } })
    await store.signIns.touch({ tokenHash: signIn.tokenHash, now: noon + 5 })
    expect((await store.signIns.find(signIn.tokenHash))?.signIn.lastSeenAtMs).toBe(noon + 5)
    const ended = makeAudit(orgId)
    await writesOnce(store, ended, () => store.signIns.end({ tokenHash: signIn.tokenHash, audit: ended }))
    expect(await store.signIns.find(signIn.tokenHash)).toBeNull()
  },
  async 'ending what has ended is not_found'({ store, orgId }) {
    const command = { tokenHash: sha256Hex('none'), audit: makeAudit(orgId) }
    const error = await writesNothing(store, orgId, () => failure(store.signIns.end(command)))
    expect(error.kind).toBe('not_found')
  },
  async 'a sign-in needs an account'({ store, orgId }) {
    const command = { signIn: makeSignIn(newId('usr'), orgId), audit: makeAudit(orgId) }
    const error = await writesNothing(store, orgId, () => failure(store.signIns.create(command)))
    expect(error.kind).toBe('not_found')
  },
  async 'pruning removes what is idle or past its end, and nothing else'({ open }) {
    using dir = tempDir()
    const store = await open(dir.path)
    const org = makeOrg()
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    const account = await member(store, org.id)
    const idleMs = 1_000
    const live = makeSignIn(account.id, org.id, { lastSeenAtMs: noon - idleMs + 1, expiresAtMs: noon + 1 })
    const idle = makeSignIn(account.id, org.id, { lastSeenAtMs: noon - idleMs, expiresAtMs: noon + 1 })
    const expiredSignIn = makeSignIn(account.id, org.id, { lastSeenAtMs: noon, expiresAtMs: noon })
    for (const signIn of [live, idle, expiredSignIn]) {
      await store.signIns.create({ signIn, audit: makeAudit(org.id) })
    }
    expect(await store.signIns.prune({ now: noon, idleMs })).toBe(2)
    expect(await store.signIns.prune({ now: noon, idleMs })).toBe(0)
    expect(await store.signIns.find(live.tokenHash)).not.toBeNull()
    await store.close()
  },
}

export const keyCases: Cases = {
  async 'a key is found by its hash at once, with every member, and listed by kind'({ store, orgId }) {
    const key = makeKey(orgId, { siteIds: ['a', 'b'], expiresAtMs: noon + 9, behindProxy: true })
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () => store.keys.create({ key, audit }))
    expect(await store.keys.findByHash(key.hash)).toEqual(key)
    const secret = makeKey(orgId, { kind: 'secret', scopes: ['traces:read'], createdAtMs: noon + 1 })
    await store.keys.create({ key: secret, audit: makeAudit(orgId) })
    expect(await store.keys.list({ orgId })).toEqual([key, secret])
    expect(await store.keys.list({ orgId, kind: 'secret' })).toEqual([secret])
    expect(await store.keys.list({ orgId: newId('org') })).toEqual([])
    expect(await store.keys.findByHash(sha256Hex('none'))).toBeNull()
  },
  async 'what a caller does with a found key changes no other look-up'({ store, orgId }) {
    const key = makeKey(orgId)
    await store.keys.create({ key, audit: makeAudit(orgId) })
    const foundKey = await store.keys.findByHash(key.hash)
    if (foundKey !== null) foundKey.label = 'changed'
    expect(await store.keys.findByHash(key.hash)).toEqual(key)
  },
  async 'a hash is taken once, and a key needs its organization'({ store, orgId }) {
    const key = makeKey(orgId)
    await store.keys.create({ key, audit: makeAudit(orgId) })
    const twin = makeKey(orgId, { hash: key.hash })
    const again = await writesNothing(store, orgId, () =>
      failure(store.keys.create({ key: twin, audit: makeAudit(orgId) })),
    )
    expect(again.kind).toBe('conflict')
    expect(await store.keys.findByHash(key.hash)).toEqual(key)
    const orphan = makeKey(newId('org'))
    const error = await failure(store.keys.create({ key: orphan, audit: makeAudit(orphan.orgId) }))
    expect(error.kind).toBe('not_found')
    expect(await store.keys.findByHash(orphan.hash)).toBeNull()
  },
  async 'revoking holds at once, is done once, and only inside the organization'({ store, orgId }) {
    const key = makeKey(orgId)
    await store.keys.create({ key, audit: makeAudit(orgId) })
    const foreign = { orgId: newId('org'), keyId: key.id, now: noon, audit: makeAudit(orgId) }
    const error = await writesNothing(store, orgId, () => failure(store.keys.revoke(foreign)))
    expect(error.kind).toBe('not_found')
    expect((await store.keys.findByHash(key.hash))?.revokedAtMs).toBeNull()
    const audit = makeAudit(orgId)
    const command = { orgId, keyId: key.id, now: noon + 3, audit }
    expect(await writesOnce(store, audit, () => store.keys.revoke(command))).toBe(true)
    expect((await store.keys.findByHash(key.hash))?.revokedAtMs).toBe(noon + 3)
    const second = { orgId, keyId: key.id, now: noon + 4, audit: makeAudit(orgId) }
    expect(await writesNothing(store, orgId, () => store.keys.revoke(second))).toBe(false)
    expect((await store.keys.list({ orgId }))[0]?.revokedAtMs).toBe(noon + 3)
  },
  async 'exposure is marked once'({ store, orgId }) {
    const key = makeKey(orgId)
    await store.keys.create({ key, audit: makeAudit(orgId) })
    const audit = makeAudit(orgId)
    const command = { orgId, keyId: key.id, now: noon + 3, audit }
    expect(await writesOnce(store, audit, () => store.keys.markExposed(command))).toBe(true)
    const second = { ...command, now: noon + 4, audit: makeAudit(orgId) }
    expect(await writesNothing(store, orgId, () => store.keys.markExposed(second))).toBe(false)
    expect((await store.keys.findByHash(key.hash))?.exposedAtMs).toBe(noon + 3)
    const foreign = { ...second, orgId: newId('org') }
    expect((await failure(store.keys.markExposed(foreign))).kind).toBe('not_found')
  },
  async 'of uses out of order the latest stands, in memory and on disk'({ store, orgId }) {
    const key = makeKey(orgId)
    await store.keys.create({ key, audit: makeAudit(orgId) })
    await store.keys.touch([
      { keyId: key.id, atMs: noon + 2, address: '10.0.0.2' },
      { keyId: key.id, atMs: noon + 1, address: '10.0.0.1' },
      { keyId: newId('key'), atMs: noon, address: '10.0.0.3' },
    ])
    await store.keys.touch([])
    const usedKey = { ...key, lastUsedAtMs: noon + 2, lastUsedAddress: '10.0.0.2' }
    expect(await store.keys.findByHash(key.hash)).toEqual(usedKey)
    expect(await store.keys.list({ orgId })).toEqual([usedKey])
  },
  async 'look-ups say the same after the store was opened again'({ open }) {
    using dir = tempDir()
    const first = await open(dir.path)
    const org = makeOrg()
    await first.orgs.create({ org, audit: makeAudit(org.id) })
    const kept = makeKey(org.id, { scopes: ['x'] })
    const revoked = makeKey(org.id)
    for (const key of [kept, revoked]) await first.keys.create({ key, audit: makeAudit(org.id) })
    await first.keys.revoke({ orgId: org.id, keyId: revoked.id, now: noon, audit: makeAudit(org.id) })
    await first.close()
    const second = await open(dir.path)
    expect(await second.keys.findByHash(kept.hash)).toEqual(kept)
    expect((await second.keys.findByHash(revoked.hash))?.revokedAtMs).toBe(noon)
    await second.close()
  },
}
