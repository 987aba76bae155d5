/** Conformance of what two nodes share beside events: the setup link, the check of keys, the progress of erasures. */
import { expect } from 'bun:test'
import type { Store } from '../../db/contract/store.ts'
import { sha256Hex } from '../../server/ids.ts'
import { makeAccount, makeAudit, makeBatch, makeEvent, noon } from './make.ts'
import { auditOf, failure, type NodeCases } from './subject.ts'

export const sharedRecordCases: NodeCases = {
  async 'nodes share one evidence pack, replaced and removed with its audit entry'({ store, another }) {
    const auditCount = async () => (await store.audit.heads())['org_system']?.count ?? 0
    const countBefore = await auditCount()
    const packOf = (n: number) => ({
      digest: `digest ${n}`,
      pack: `{"n":${n},"odd":"\u2028 'é'"}`,
      signedBy: n === 1 ? null : 'key',
      storedBy: 'cli',
      storedAtMs: noon + n,
    })
    expect(await another.evidence.digest()).toBeNull()
    for (const n of [1, 2]) {
      await store.evidence.replace({ pack: packOf(n), audit: makeAudit('org_system') })
      expect(await another.evidence.digest()).toBe(`digest ${n}`)
      expect(await another.evidence.read()).toEqual(packOf(n))
    }
    await another.evidence.replace({ pack: null, audit: makeAudit('org_system') })
    expect([await store.evidence.digest(), await store.evidence.read()]).toEqual([null, null])
    expect(await auditCount()).toBe(countBefore + 3)
  },
  async 'versions of robots.txt that two nodes set at once each get a number, and equal ones are stored once'({
    store,
    another,
    orgId,
  }) {
    const set = (node: Store, n: number, text: string) =>
      node.robots.set({
        orgId,
        siteId: 'shop',
        text,
        fromMs: noon + n,
        now: noon,
        setBy: 'system',
        sitesMax: 9,
        versionsMax: 99,
        audit: makeAudit(orgId),
      })
    const nodes = [store, another]
    const numbers = Array.from({ length: 12 }, (_, n) => n)
    const different = await Promise.all(numbers.map((n) => set(nodes[n % 2]!, n, `# ${n}`)))
    expect(different.map(({ state }) => state)).toEqual(numbers.map(() => 'stored'))
    const listed = await another.robots.list({ orgId, siteId: 'shop' })
    expect(new Set(listed.map(({ version }) => version)).size).toBe(12)
    // Nodes that watch the same file.
    const equal = await Promise.all(numbers.map((n) => set(nodes[n % 2]!, 100, 'same')))
    expect(equal.filter(({ state }) => state === 'stored')).toHaveLength(1)
    expect((await store.robots.list({ orgId, siteId: 'shop' })).length).toBe(13)
  },
  async 'nodes share one setup link, which works on each and creates one owner'({ store, another, orgId }) {
    const linkOf = (n: number, now: number) => ({
      link: {
        hash: sha256Hex(`setup ${orgId} ${n}`),
        purpose: 'setup' as const,
        accountId: null,
        expiresAtMs: now + 1_000,
      },
      sealedToken: `sealed ${n}`,
      now,
    })
    const share = (node: Store, n: number, now: number) => node.accounts.shareSetupLink(linkOf(n, now))
    const shared = await Promise.all([0, 1, 2, 3].map((n) => share(n % 2 === 0 ? store : another, n, noon)))
    expect(new Set(shared).size).toBe(1)
    const first = Number(shared[0]!.slice(-1))
    expect(await share(another, 9, noon + 900)).toBe(shared[0]!) // and prolongs it
    const { hash } = linkOf(first, noon).link
    for (const node of [store, another])
      expect(await node.accounts.findLink({ hash, now: noon + 1_899 })).toMatchObject({ purpose: 'setup' })
    expect(await share(store, 7, noon + 1_900)).toBe('sealed 7')
    expect(await another.accounts.findLink({ hash, now: noon })).toBeNull()
    const linkHash = linkOf(7, noon).link.hash
    const created = await Promise.all(
      [another, store].map((node) => {
        const claim = { account: makeAccount(), orgId, linkHash, now: noon, audit: makeAudit(orgId) }
        return node.accounts.createFirstOwner(claim)
      }),
    )
    expect(created.toSorted()).toEqual(['created', 'owner_exists'])
  },
  async 'nodes agree on the first check of their keys, until one replaces it'({ store, another, orgId }) {
    const agreed = await Promise.all([store, another].map((node, n) => node.keyCheck.agree(`${orgId} ${n}`)))
    expect(agreed[0]).toBe(agreed[1]!)
    await another.keyCheck.replace('newer')
    expect(await store.keyCheck.agree('older')).toBe('newer')
    await store.keyCheck.replace(null)
    expect(await another.keyCheck.agree('next')).toBe('next')
  },
  async 'an erasure on one node is seen on the other with its progress, and excludes another'({
    store,
    another,
    orgId,
  }) {
    const now = Date.now()
    await store.events.append(makeBatch(orgId, [makeEvent('a'), makeEvent('b')]))
    const command = { orgId, sessionIds: [], subjects: ['nobody'] }
    const runOf = (id: string, node: string, leaseMs = 60_000) => {
      return { run: { id, kind: 'subject' as const, node, leaseMs, now: Date.now() } }
    }
    const first = (node: Store, id: string, name: string, leaseMs?: number) =>
      node.events.erase({ ...command, audit: makeAudit(orgId), cursor: null, ...runOf(id, name, leaseMs) })
    const findErasure = (node: Store) => node.erasures.find({ orgId, now: Date.now() })
    expect(await findErasure(another)).toBeNull()
    const { next } = await first(store, 'run-1', 'one')
    expect(await findErasure(another)).toMatchObject({
      run: 'run-1',
      kind: 'subject',
      node: 'one',
      events: 0,
      endedAtMs: null,
      problem: null,
    })
    const countBefore = (await auditOf(store, orgId)).length
    expect((await failure(first(another, 'run-2', 'two'))).kind).toBe('conflict')
    expect(await auditOf(store, orgId)).toHaveLength(countBefore) // it has erased nothing and noted nothing
    // A node that is silent for its lease has stopped. It is fenced when it comes back.
    await Bun.sleep(20)
    expect((await findErasure(another))!.silentMs).toBeGreaterThanOrEqual(15)
    const second = await first(another, 'run-2', 'two', 10)
    const late = store.events.erase({ ...command, audit: null, cursor: next!, ...runOf('run-1', 'one') })
    expect((await failure(late)).kind).toBe('conflict')
    await store.erasures.end({ orgId, run: 'run-1', logEmptied: true, problem: null, now })
    expect(await findErasure(store)).toMatchObject({ run: 'run-2', endedAtMs: null })
    await another.events.erase({ ...command, audit: null, cursor: second.next!, ...runOf('run-2', 'two') })
    await another.erasures.end({ orgId, run: 'run-2', logEmptied: null, problem: 'it broke', now })
    expect(await findErasure(store)).toMatchObject({ run: 'run-2', logEmptied: null, problem: 'it broke' })
    // One that ended, or was begun by the same node before it restarted, excludes none.
    await first(store, 'run-3', 'one')
    await first(store, 'run-4', 'one')
    expect(await findErasure(another)).toMatchObject({ run: 'run-4', endedAtMs: null, problem: null })
  },
}
