/** Conformance of the audit chain, rejected samples, secrets, health and closing. */
import { expect } from 'bun:test'
import type { AuditFilter, RejectedSample } from '../../db/contract/store.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAudit, makeBatch, makeEvent, makeKey, makeOrg, noon } from './make.ts'
import { auditOf, failure, writesNothing, type Cases } from './subject.ts'

export const auditCases: Cases = {
  async 'entries come back newest first, exactly once, in pages'({ store, orgId }) {
    const entriesBefore = await auditOf(store, orgId)
    const entries = Array.from({ length: 20 }, (_, n) =>
      makeAudit(orgId, { occurredAtMs: noon + n, target: `t${n}` }),
    )
    for (const entry of entries) await store.audit.append(entry)
    const entriesAfter = await auditOf(store, orgId)
    expect(entriesAfter.slice(0, 20)).toMatchObject(entries.toReversed())
    expect(entriesAfter.length).toBe(entriesBefore.length + 20)
  },
  async 'metadata and texts of any kind survive'({ store, orgId }) {
    const metadata = {
      'ключ "q"': ['\u0000\n', { deep: [1.5, null, true] }],
      __proto__x: '😀',
      n: 9007199254740991,
    }
    const entry = makeAudit(orgId, { metadata, actor: 'user:ü', target: 'a\'b"c' })
    await store.audit.append(entry)
    expect((await auditOf(store, orgId))[0]).toMatchObject(entry)
  },
  async 'checkpoints are stored when their chain has moved, and outlive their organization'({
    store,
    orgId,
  }) {
    const signed = (count: number) => {
      return { orgId, count, hash: `hash ${count}`, at: '2026-06-01', key: 'k', signature: `s${count}` }
    }
    expect(await store.audit.addCheckpoints([signed(1)])).toEqual([signed(1)])
    const otherCheckpoint = { ...signed(1), orgId: `${orgId} other` }
    expect(await store.audit.addCheckpoints([signed(1), otherCheckpoint])).toEqual([otherCheckpoint])
    expect(await store.audit.addCheckpoints([signed(2), otherCheckpoint])).toEqual([signed(2)])
    await store.orgs.requestDeletion({ orgId, askedAtMs: noon, dueAtMs: noon, audit: makeAudit(orgId) })
    await store.orgs.remove({ orgId, now: noon, audit: makeAudit('org_system') })
    expect(await store.audit.addCheckpoints([signed(2), otherCheckpoint])).toEqual([])
  },
  async 'entries of two organizations do not meet, and an organization need not exist'({ store, orgId }) {
    const system = makeAudit('org_system')
    await store.audit.append(system)
    expect((await auditOf(store, 'org_system'))[0]).toMatchObject(system)
    expect((await auditOf(store, orgId)).map((entry) => entry.orgId)).not.toContain('org_system')
  },
  async 'an id is used once'({ store, orgId }) {
    const entry = makeAudit(orgId)
    await store.audit.append(entry)
    const error = await writesNothing(store, orgId, () => failure(store.audit.append(entry)))
    expect(error.kind).toBe('conflict')
  },
  async 'a verb whose entry cannot be written does nothing'({ store, orgId }) {
    const takenEntry = makeAudit(orgId)
    await store.audit.append(takenEntry)
    const key = makeKey(orgId)
    const error = await failure(store.keys.create({ key, audit: takenEntry }))
    expect(error.kind).toBe('conflict')
    expect(await store.keys.list({ orgId })).toEqual([])
    expect(await store.keys.findByHash(key.hash)).toBeNull()
  },
  async 'parallel appends make one unforked chain'({ store, orgId }) {
    await Promise.all(Array.from({ length: 40 }, () => store.audit.append(makeAudit(orgId))))
    const verdict = await store.audit.verify([])
    expect(verdict.faults).toEqual([])
    const chain = verdict.chains.find((candidate) => candidate.orgId === orgId)
    expect(chain?.count).toBe((await auditOf(store, orgId)).length)
  },
}

/** The server signs trims and verifies the signatures. A store compares a trim with the chain. */
export const trimCases: Cases = {
  async 'a trim moves the start of a chain; its entries are deleted, and the rest verifies'({
    store,
    orgId,
  }) {
    const entries = Array.from({ length: 6 }, (_, n) => makeAudit(orgId, { occurredAtMs: noon + n * 1_000 }))
    for (const entry of entries) await store.audit.append(entry)
    const entriesBefore = await auditOf(store, orgId)
    const point = (await store.audit.trimPoint({ orgId, beforeMs: noon + 3_000 }))!
    expect(point.count).toBe(entriesBefore.length - 3)
    const trim = { orgId, ...point, at: '2026-06-01', key: 'k', signature: 's' }
    const forged = await failure(store.audit.trim({ trim: { ...trim, hash: 'x' }, audit: makeAudit(orgId) }))
    expect(forged.kind).toBe('conflict')
    const audit = makeAudit(orgId, { action: 'audit.trimmed' })
    await store.audit.trim({ trim, audit })
    const entriesAfter = await auditOf(store, orgId)
    expect(entriesAfter.map(({ id }) => id)).toEqual([
      audit.id,
      ...entries
        .slice(3)
        .toReversed()
        .map(({ id }) => id),
    ])
    expect(await store.audit.sweep(orgId)).toEqual({ entries: point.count, done: true })
    expect(await store.audit.sweep(orgId)).toEqual({ entries: 0, done: true })
    expect((await store.audit.trims())[orgId]).toEqual(trim)
    expect((await store.audit.rows({ orgId, afterSeq: 0, limit: 1 }))[0]?.id).toBe(entries[3]!.id)
    const verdict = await store.audit.verify([])
    expect(verdict.faults).toEqual([])
    expect(verdict.chains.find((chain) => chain.orgId === orgId)).toMatchObject({
      count: entriesBefore.length + 1,
      trim,
    })
    expect(await store.audit.trimPoint({ orgId, beforeMs: noon + 3_000 })).toBeNull()
    const back = await failure(store.audit.trim({ trim: { ...trim, count: 1 }, audit: makeAudit(orgId) }))
    expect(back.kind).toBe('conflict')
  },
  async 'a row of the chain has the fields of its hash alone'({ store, orgId }) {
    const entry = makeAudit(orgId)
    await store.audit.append(entry)
    const row = (await store.audit.rows({ orgId, afterSeq: 0, limit: 100 })).at(-1)!
    expect(Object.keys(row).toSorted()).toEqual([
      'action',
      'actor',
      'hash',
      'id',
      'metadata',
      'occurredAt',
      'orgId',
      'position',
      'prevHash',
      'target',
    ])
    const [listed] = (await store.audit.list({ orgId, limit: 1, beforeSeq: null })).entries
    expect(listed).toEqual({ ...entry, seq: Number(row.position) })
  },
  async 'settings of retention and the progress of a re-count are the organization’s own'({ store, orgId }) {
    expect(await store.retention.setting(orgId)).toEqual({ days: null, bytes: null, auditDays: null })
    const setting = { days: 30, bytes: 5_000_000_000, auditDays: null }
    await store.retention.set({ orgId, setting, audit: makeAudit(orgId) })
    expect(await store.retention.setting(orgId)).toEqual(setting)
    await store.retention.set({ orgId, setting: { ...setting, days: null }, audit: makeAudit(orgId) })
    expect(await store.retention.setting(orgId)).toEqual({ ...setting, days: null })
    expect(await store.retention.recounted(orgId)).toBeNull()
    await store.retention.noteRecount({ orgId, throughMs: noon, repaired: 0 })
    await store.retention.noteRecount({ orgId, throughMs: noon + 1, repaired: 2 })
    expect(await store.retention.recounted(orgId)).toEqual({ throughMs: noon + 1, repaired: 2 })
  },
}

function makeSample(orgId: string, n: number): RejectedSample {
  const excerpt = `{"n":${n}}`
  return { orgId, keyId: 'key_1', atMs: noon + n, code: 'required', message: 'no id', path: '/id', excerpt }
}

export const restCases: Cases = {
  async 'misspelled fields are summed by key and path, the most frequent first'({ store, orgId }) {
    const miss = (keyId: string, path: string, hour: number, events: number) => {
      return { orgId, keyId, hourStartMs: noon + hour * 3_600_000, path, known: '/outcome', events }
    }
    const nearMisses = [miss('a', '/outcom', 0, 2), miss('a', '/outcom', 1, 3), miss('b', '/Outcome', 1, 4)]
    await store.ingestCounts.add({ counts: [], nearMisses, keptSinceMs: 0 })
    await store.ingestCounts.add({ counts: [], nearMisses: [miss('b', '/Outcome', 1, 6)], keptSinceMs: 0 })
    const listed = (sinceMs: number) => store.ingestCounts.nearMisses({ orgId, sinceMs })
    const misspelling = (keyId: string, path: string, events: number) => ({
      keyId,
      path,
      known: '/outcome',
      events,
    })
    expect(await listed(0)).toEqual([misspelling('b', '/Outcome', 10), misspelling('a', '/outcom', 5)])
    expect(await listed(noon + 3_600_000)).toEqual([
      misspelling('b', '/Outcome', 10),
      misspelling('a', '/outcom', 3),
    ])
    await store.ingestCounts.add({
      counts: [],
      nearMisses: [miss('c', '/x', 2, 1)],
      keptSinceMs: noon + 3_600_000,
    })
    expect(await listed(0)).toEqual([
      misspelling('b', '/Outcome', 10),
      misspelling('a', '/outcom', 3),
      misspelling('c', '/x', 1),
    ])
  },
  async 'a lookup of a text that cannot be stored finds nothing'({ store, orgId }) {
    await store.audit.append(makeAudit(orgId, { actor: 'a', target: 'a\uffffb' }))
    for (const text of ['a\0', '\0', 'a\0b', '\ud800', 'a\udc00b', '\ud800\ud800']) {
      expect(await store.orgs.find(text)).toBeNull()
      expect(await store.accounts.findByEmail(text)).toBeNull()
      expect(await store.webhooks.find({ orgId, id: text })).toBeNull()
      const list = (filter: AuditFilter) => store.audit.list({ orgId, limit: 10, beforeSeq: null, filter })
      expect((await list({ actors: [text] })).entries).toEqual([])
      expect((await list({ targets: [text] })).entries).toEqual([])
      expect((await list({ actions: [text, `${text}.*`] })).entries).toEqual([])
      const query = { orgId, siteIds: [text, 'x'], after: null, limit: 10, bytesMax: 1_000 }
      expect(await store.registry.tools({ ...query, withRemoved: true })).toEqual({
        tools: [],
        hasMore: false,
      })
      expect(await store.registry.memories(query)).toEqual({ memories: [], hasMore: false })
    }
  },
  async 'the newest 1,000 rejected samples of each organization stay'({ store, orgId }) {
    const otherSample = makeSample('org_other', 0)
    await store.rejected.add([otherSample])
    const samples = Array.from({ length: 1_010 }, (_, n) => makeSample(orgId, n))
    await store.rejected.add(samples.slice(0, 600))
    await store.rejected.add(samples.slice(600))
    await store.rejected.add([])
    expect(await store.rejected.list({ orgId, limit: 5_000 })).toEqual(samples.slice(10).toReversed())
    expect(await store.rejected.list({ orgId, limit: 2 })).toEqual(samples.slice(-2).toReversed())
    expect(await store.rejected.list({ orgId: 'org_other', limit: 10 })).toEqual([otherSample])
  },
  async 'a secret is made once and is the same after opening again'({ open }) {
    using dir = tempDir()
    const first = await open(dir.path)
    const secrets = await Promise.all([first.secret('cursor'), first.secret('cursor')])
    expect(secrets[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(secrets[1]).toBe(secrets[0])
    await first.close()
    const second = await open(dir.path)
    expect(await second.secret('cursor')).toBe(secrets[0])
    await second.close()
  },
  async 'health tells schema, engine and sizes'({ store }) {
    const health = await store.health()
    expect(health.schema).toBeGreaterThan(0)
    expect(health.engine).toMatch(/^\S+ \d+\.\d+/)
    expect(health.bytes).toBeGreaterThanOrEqual(health.logBytes ?? 0)
  },
  async 'closing finishes what was asked before and refuses what comes after'({ open }) {
    using dir = tempDir()
    const store = await open(dir.path)
    const org = makeOrg()
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    const appends = Array.from({ length: 30 }, (_, n) =>
      store.events.append(makeBatch(org.id, [makeEvent(`e${n}`)])),
    )
    const closing = store.close()
    const late = [
      store.events.append(makeBatch(org.id, [makeEvent('late')])),
      store.orgs.list(),
      Promise.resolve(store.keys.findByHash('x')),
      store.audit.append(makeAudit(org.id)),
      store.secret('cursor'),
      store.health(),
    ]
    const kinds = await Promise.all(late.map(async (promise) => (await failure(promise)).kind))
    expect(kinds).toEqual(late.map(() => 'closed' as const))
    expect((await Promise.all(appends)).reduce((sum, { accepted }) => sum + accepted, 0)).toBe(30)
    await closing
    await store.close()
    const again = await open(dir.path)
    expect((await again.events.overview(org.id)).total).toBe(30)
    await again.close()
  },
}
