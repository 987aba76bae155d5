/** Conformance of two nodes on one database: what one of them does is true on the other. */
import { expect } from 'bun:test'
import type { JobLease } from '../../db/contract/nodes.ts'
import type { Store } from '../../db/contract/store.ts'
import { sha256Hex } from '../../server/ids.ts'
import { makeAccount, makeAudit, makeBatch, makeEvent, makeKey, makeOrg, noon } from './make.ts'
import { failure, type NodeCases } from './subject.ts'
import { drain, fixedRule, makeClaim, makeDelivery, makeEndpoint, openFiring } from './webhook-make.ts'

/** The promise of the contract is a second; a busy machine gets half of one more. */
const soonMs = 1_500

async function soon(holds: () => Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + soonMs; !(await holds());) {
    if (performance.now() > endMs) throw new Error('it did not happen in time')
    await Bun.sleep(10)
  }
}

const appendTo = (store: Store, orgId: string, ids: string[], receivedAtMs = noon + 1) =>
  store.events.append({
    ...makeBatch(
      orgId,
      ids.map((id) => makeEvent(id)),
    ),
    receivedAtMs,
  })

const totalOf = async (store: Store, orgId: string) =>
  (await store.events.metrics({ orgId, sinceMs: 0, untilMs: null, rowsMax: 10 })).total

/** Every arrival of the organization, as the tail returns it. */
async function arrivalsOf(store: Store, orgId: string) {
  const { events } = await store.events.tail({ orgId, filter: {}, afterSeq: 0, limit: 10_000 })
  return events
}

export const nodeCases: NodeCases = {
  async 'arrival numbers are dense from 1 and become visible in order while both append'({
    store,
    another,
    orgId,
  }) {
    const batches = Array.from({ length: 40 }, (_, n) =>
      Array.from({ length: 1 + (n % 7) }, (_, i) => `${n}-${i}`),
    )
    let isSending = true
    const sending = Promise.all(
      batches.map((ids, n) => appendTo(n % 2 === 0 ? store : another, orgId, ids)),
    ).finally(() => (isSending = false))
    const heardCounts = { store: 0, another: 0 }
    const follow = async (name: 'store' | 'another', reader: Store) => {
      for (let last = false; ;) {
        const { events, lastSeq } = await reader.events.tail({
          orgId,
          filter: {},
          afterSeq: heardCounts[name],
          limit: 50,
        })
        // Dense: no number is missing among those that are visible, so none can appear below them later.
        expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => heardCounts[name] + 1 + index))
        heardCounts[name] = lastSeq
        if (last && events.length === 0) return
        last = !isSending
      }
    }
    await Promise.all([follow('store', store), follow('another', another), sending])
    const total = batches.flat().length
    expect(heardCounts).toEqual({ store: total, another: total })
  },
  async 'an id that one node stored is known to the other, also when both send it at once'({
    store,
    another,
    orgId,
  }) {
    await appendTo(store, orgId, ['a', 'b'])
    expect(await appendTo(another, orgId, ['b', 'c'])).toMatchObject({ accepted: 1, deduped: 1 })
    const ids = Array.from({ length: 300 }, (_, n) => `both-${n}`)
    const results = await Promise.all([appendTo(store, orgId, ids), appendTo(another, orgId, ids)])
    expect(results.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(300)
    expect(results.reduce((sum, { deduped }) => sum + deduped, 0)).toBe(300)
    expect(await totalOf(another, orgId)).toBe(303)
  },
  async 'the time of arrival never falls between nodes whose clocks differ'({ store, another, orgId }) {
    const times = [5_000, 1_000, 5_500, 2_000, 9_000]
    for (const [n, afterMs] of times.entries())
      await appendTo(n % 2 === 0 ? store : another, orgId, [`${n}`], noon + afterMs)
    const received = (await arrivalsOf(store, orgId)).map(({ receivedAtMs }) => receivedAtMs - noon)
    expect(received).toEqual([5_000, 5_000, 5_500, 5_500, 9_000])
  },
  async 'after a clock that was more than an hour ahead, arrivals show their own time again'({
    store,
    another,
    orgId,
  }) {
    const dayMs = 24 * 3_600_000
    const times = [5_000, 400 * dayMs, 6_000, 5_500, 7_000]
    for (const [n, afterMs] of times.entries())
      await appendTo(n % 2 === 0 ? store : another, orgId, [`${n}`], noon + afterMs)
    const received = (await arrivalsOf(another, orgId)).map(({ receivedAtMs }) => receivedAtMs - noon)
    expect(received).toEqual([5_000, 400 * dayMs, 6_000, 6_000, 7_000])
  },
  async 'a key is found and rejected on every node: at once where it was changed, within a second elsewhere'({
    store,
    another,
    orgId,
  }) {
    const key = makeKey(orgId)
    await store.keys.create({ key, audit: makeAudit(orgId) })
    expect(await store.keys.findByHash(key.hash)).toEqual(key)
    await soon(async () => (await another.keys.findByHash(key.hash)) !== null)
    await another.keys.revoke({ orgId, keyId: key.id, now: noon, audit: makeAudit(orgId) })
    expect((await another.keys.findByHash(key.hash))?.revokedAtMs).toBe(noon)
    await soon(async () => (await store.keys.findByHash(key.hash))?.revokedAtMs === noon)
  },
  async 'no key is lost from memory while both nodes create keys'({ store, another, orgId }) {
    const keys = Array.from({ length: 30 }, () => makeKey(orgId))
    const create = async (node: Store, key: (typeof keys)[number]) => {
      await node.keys.create({ key, audit: makeAudit(orgId) })
      expect(await node.keys.findByHash(key.hash)).not.toBeNull()
    }
    for (const [n, key] of keys.entries()) {
      await create(n % 2 === 0 ? store : another, key)
      await Bun.sleep(n % 5 === 0 ? 120 : 0) // polls of both begin and end between the changes
    }
    for (const node of [store, another])
      for (const key of keys) await soon(async () => (await node.keys.findByHash(key.hash)) !== null)
  },
  async 'a restricted site and a removed organization are known to every node within a second'({
    store,
    another,
    orgId,
  }) {
    const site = { siteId: 'shop', name: null, hidden: false, restricted: true, hosts: [] }
    await store.sites.change({ orgId, site, audit: makeAudit(orgId) })
    expect([...(await store.sites.restricted(orgId))]).toEqual(['shop'])
    await soon(async () => (await another.sites.restricted(orgId)).has('shop'))
    await another.sites.change({ orgId, site: { ...site, restricted: false }, audit: makeAudit(orgId) })
    await soon(async () => (await store.sites.restricted(orgId)).size === 0)

    const key = makeKey(orgId)
    await another.keys.create({ key, audit: makeAudit(orgId) })
    await soon(async () => (await store.keys.findByHash(key.hash)) !== null)
    const removalTimes = { orgId, askedAtMs: noon, dueAtMs: noon }
    await store.orgs.requestDeletion({ ...removalTimes, audit: makeAudit(orgId) })
    await store.orgs.remove({ orgId, now: noon, audit: makeAudit('org_system') })
    expect(await store.keys.findByHash(key.hash)).toBeNull()
    await soon(async () => (await another.keys.findByHash(key.hash)) === null)
  },
  async 'a count requested from the other node after an acknowledgement includes it'({
    store,
    another,
    orgId,
  }) {
    for (let n = 0; n < 20; n++) {
      const [writer, reader] = n % 2 === 0 ? [store, another] : [another, store]
      expect(await totalOf(reader, orgId)).toBe(n)
      await appendTo(writer, orgId, [`${n}`])
      expect([await totalOf(reader, orgId), await totalOf(writer, orgId)]).toEqual([n + 1, n + 1])
    }
    const audit = makeAudit(orgId)
    expect((await another.events.overview(orgId)).total).toBe(20)
    expect(await store.events.removeSite({ orgId, siteId: 'shop-acme', audit })).toBe(20)
    expect((await another.events.overview(orgId)).total).toBe(0)
  },
  async 'a watch is called soon for events of the other node'({ store, another, orgId }) {
    const calls: string[] = []
    const stop = another.events.watch((orgIds) => calls.push(...orgIds))
    await appendTo(store, orgId, ['a'])
    await soon(async () => calls.includes(orgId))
    stop()
  },
  async 'the first claim of a node leaves the leases of the others'({ store, another, orgId }) {
    const delivery = makeDelivery(orgId, `held-${orgId}`, `held-${orgId}`)
    await store.webhooks.schedule({ delivery, audit: makeAudit(orgId) })
    const claim = (node: Store, leaseId: string) =>
      node.webhooks.recordAndClaim({ now: 1_000, outcomes: [], released: [], claim: makeClaim(leaseId) })
    expect((await claim(store, `held-${orgId}-1`)).map(({ delivery: { id } }) => id)).toEqual([delivery.id])
    expect(await claim(another, `held-${orgId}-2`)).toEqual([])
    await drain(store)
  },
  async 'two claimers never get the same delivery'({ store, another, orgId }) {
    const ids = Array.from({ length: 60 }, (_, n) => `pair-${orgId}-${n}`)
    for (const [n, id] of ids.entries())
      await store.webhooks.schedule({
        delivery: makeDelivery(orgId, id, `pair-${n % 20}`),
        audit: makeAudit(orgId),
      })
    const claimed = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        (n % 2 === 0 ? store : another).webhooks.recordAndClaim({
          now: 1_000,
          outcomes: [],
          released: [],
          claim: makeClaim(`pair-${orgId}-lease-${n}`, { limit: 8 }),
        }),
      ),
    )
    const deliveryIds = claimed.flat().map(({ delivery }) => delivery.id)
    expect(deliveryIds.length).toBeGreaterThan(8)
    expect(new Set(deliveryIds).size).toBe(deliveryIds.length)
    await drain(store)
  },
  async 'one node at a time has a job; a lease ends by the clock of the store, and the old holder is fenced'({
    store,
    another,
    orgId,
  }) {
    const job = `job ${orgId}`
    const a = { job, node: 'a', leaseMs: 400 }
    const b = { job, node: 'b', leaseMs: 60_000 }
    const first = await store.jobs.claim({ ...a, now: Date.now() })
    expect(first).not.toBeNull()
    expect(await store.jobs.renew({ ...first!, leaseMs: 60_000, now: Date.now() })).toBe(true)
    await Bun.sleep(450) // past the lease of the claim
    expect(await another.jobs.claim({ ...b, now: Date.now() })).toBeNull()
    expect(await store.jobs.renew({ ...first!, leaseMs: 1, now: Date.now() })).toBe(true)
    await Bun.sleep(50)
    const second = await another.jobs.claim({ ...b, now: Date.now() })
    expect(second!.lease).toBeGreaterThan(first!.lease)
    expect(await store.jobs.renew({ ...first!, leaseMs: 400, now: Date.now() })).toBe(false)
    await store.jobs.release({ ...first!, quietMs: 0, now: Date.now() }) // of a lost lease: changes nothing
    expect(await store.jobs.claim({ ...a, now: Date.now() })).toBeNull()
    await another.jobs.release({ ...second!, quietMs: 0, now: Date.now() })
    expect(await store.jobs.claim({ ...a, now: Date.now() })).not.toBeNull()
  },
  async 'of many claims at once one wins, and a released job stays quiet for the others'({
    store,
    another,
    orgId,
  }) {
    const job = `job ${orgId}`
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        (n % 2 === 0 ? store : another).jobs.claim({ job, node: `n${n}`, leaseMs: 60_000, now: Date.now() }),
      ),
    )
    const won = claims.filter((lease) => lease !== null)
    expect(won.length).toBe(1)
    const winner = `n${claims.findIndex((lease) => lease !== null)}`
    await store.jobs.release({ ...won[0]!, quietMs: 60_000, now: Date.now() })
    expect(await another.jobs.claim({ job, node: 'late', leaseMs: 1_000, now: Date.now() })).toBeNull()
    const again = await another.jobs.claim({ job, node: winner, leaseMs: 1_000, now: Date.now() })
    expect(again!.lease).toBeGreaterThan(won[0]!.lease)
  },
  async 'nodes are listed with the time of the store, and a heartbeat needs a registration'({
    store,
    another,
  }) {
    const now = Date.now()
    await store.nodes.register({ node: { name: 'edge', version: '1.0.0', role: 'ingest' }, now })
    await another.nodes.register({ node: { name: 'core', version: '1.1.0', role: 'all' }, now })
    const { storeMs } = await store.nodes.heartbeat({ name: 'edge', report: null, now: now + 5 })
    const listed = await another.nodes.list({ now })
    expect(listed).toMatchObject([
      { name: 'core', version: '1.1.0', role: 'all' },
      { name: 'edge', version: '1.0.0', role: 'ingest', seenAtMs: storeMs },
    ])
    expect(listed[1]!.startedAtMs).toBeLessThanOrEqual(listed[1]!.seenAtMs)
    const unknown = await failure(store.nodes.heartbeat({ name: 'nobody', report: null, now }))
    expect(unknown.kind).toBe('not_found')
    await another.nodes.register({ node: { name: 'edge', version: '1.2.0', role: 'web' }, now: now + 9 })
    expect((await store.nodes.list({ now })).map(({ name, version }) => [name, version])).toEqual([
      ['core', '1.1.0'],
      ['edge', '1.2.0'],
    ])
  },
  async 'a node reports its state with each heartbeat, and a later one under its name is not ended by it'({
    store,
    another,
  }) {
    const now = Date.now()
    const node = { name: 'said "<b>"', version: '1', role: 'all' as const }
    const { startedAtMs } = await store.nodes.register({ node, now })
    const ownNodes = async () => (await another.nodes.list({ now })).filter(({ name }) => name === node.name)
    expect(await ownNodes()).toMatchObject([{ startedAtMs, report: null }])
    const report = { aheadMs: -3, queuedBytes: 5, queuedMs: 7, viewMs: 9, isEnding: true, problem: "it's" }
    const beat = await store.nodes.heartbeat({ name: node.name, report, now })
    expect(beat.startedAtMs).toBe(startedAtMs)
    expect(await ownNodes()).toMatchObject([{ report }])

    const later = await another.nodes.register({ node, now: now + 50 })
    await Bun.sleep(2)
    const again = await another.nodes.register({ node, now: now + 60 })
    expect(again.startedAtMs).toBeGreaterThan(later.startedAtMs)
    const heartbeat = await store.nodes.heartbeat({ name: node.name, report, now: now + 70 })
    expect(heartbeat.startedAtMs).toBe(again.startedAtMs)
    await store.nodes.leave({ name: node.name, startedAtMs })
    expect(await ownNodes()).toHaveLength(1)
    await another.nodes.leave({ name: node.name, startedAtMs: again.startedAtMs })
    expect(await ownNodes()).toHaveLength(0)
  },
  async 'an evaluation whose job another node has claimed since changes no alert'({ store, another, orgId }) {
    const { webhooks } = store
    const endpointId = `ep_${orgId}`
    const ruleId = `rul_${orgId}`
    const job = `alerts ${orgId}`
    const audit = () => makeAudit(orgId)
    await webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, endpointId), audit: audit() })
    const rule = { id: ruleId, orgId, endpointId, kind: 'silence' as const, createdAtMs: 1, ...fixedRule }
    const numbers = { threshold: null, minutes: 5, eventsMin: null }
    await webhooks.createRule({ rule: { ...rule, ...numbers }, rulesMax: 9, audit: audit() })
    const lost = (await store.jobs.claim({ job, node: 'a', leaseMs: 1, now: Date.now() }))!
    await Bun.sleep(5)
    const lease = (await another.jobs.claim({ job, node: 'b', leaseMs: 60_000, now: Date.now() }))!
    const id = `inc-${orgId}`
    const incident = { id, orgId, ruleId, subject: '', ...openFiring, state: 'pending' as const, data: {} }
    const delivery = (name: string) => makeDelivery(orgId, `${name}-${orgId}`, endpointId, { endpointId })
    const steps = (jobLease: JobLease) => [
      () => webhooks.openIncident({ incident, delivery: null, once: false, lease: jobLease, audit: audit() }),
      () =>
        webhooks.fireIncident({
          id,
          now: 2,
          data: {},
          delivery: delivery('fire'),
          lease: jobLease,
          audit: audit(),
        }),
      () => webhooks.noteIncident({ id, clearSinceMs: 3, lease: jobLease }),
      () =>
        webhooks.resolveIncident({ id, now: 4, delivery: delivery('end'), lease: jobLease, audit: audit() }),
    ]
    for (const [n, step] of steps(lease).entries()) {
      expect((await failure(steps(lost)[n]!() as Promise<unknown>)).kind).toBe('conflict')
      await step()
    }
    expect(await webhooks.incidents({ orgId, isOpen: null, limit: 9 })).toMatchObject([
      { id, state: 'firing', openedAtMs: 2, clearSinceMs: 3, resolvedAtMs: 4 },
    ])
    await drain(store)
  },
  async 'the backlog is what no count, endpoint or delivery has seen yet'({ store, another, orgId }) {
    const backlogBefore = await another.nodes.backlog({ now: 2_000 })
    expect(backlogBefore).toMatchObject({ undispatched: 0, deliveriesDue: 0, oldestDueAtMs: null })
    const endpoint = makeEndpoint(orgId, `ep_${orgId}`)
    await store.webhooks.createEndpoint({ endpoint, audit: makeAudit(orgId) })
    await appendTo(store, orgId, ['a', 'b', 'c'])
    expect((await another.nodes.backlog({ now: 2_000 })).undispatched).toBe(3)
    expect((await another.nodes.backlog({ now: 2_000 })).unfolded).toBeGreaterThanOrEqual(0)
    const delivery = makeDelivery(orgId, `due-${orgId}`, `due-${orgId}`)
    await store.webhooks.schedule({ delivery, audit: makeAudit(orgId) })
    const due = await another.nodes.backlog({ now: 2_000 })
    expect(due.deliveriesDue).toBe(1)
    expect(due.oldestDueAtMs).toBeGreaterThan(0)
    await drain(store)
    expect((await another.nodes.backlog({ now: 2_000 })).deliveriesDue).toBe(0)
    await store.webhooks.deleteEndpoint({
      orgId,
      endpointId: endpoint.id,
      now: noon,
      audit: makeAudit(orgId),
    })
    expect((await another.nodes.backlog({ now: 2_000 })).undispatched).toBe(0)
  },
  async 'a store says how old its view of the other nodes is'({ store, another }) {
    for (const node of [store, another]) {
      const behind = node.behind()!
      expect(behind.viewMs).toBeLessThan(5_000)
      expect(behind.upkeep?.failingMs ?? null).toBeNull()
    }
  },
  async 'texts are ordered by their bytes, and a search ignores the case of ASCII letters only'({
    store,
    another,
    orgId,
  }) {
    const names = ['b', 'Z', 'é', 'a', 'É', 'B', '漢', 'aa', '😀', '_']
    for (const name of names) {
      const view = { id: `${orgId} ${name}`, orgId, name, search: '', createdBy: 'usr_1', createdAtMs: noon }
      await store.views.create({ view, viewsMax: 20, audit: makeAudit(orgId, { target: name }) })
    }
    const byBytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect((await another.views.list(orgId)).map(({ name }) => name)).toEqual(byBytes)
    const targetsOf = async (text: string) => {
      return (await another.audit.list({ orgId, filter: { text }, limit: 20, beforeSeq: null })).entries
        .map(({ target }) => target)
        .toSorted()
    }
    expect(await targetsOf('É')).toEqual(['É'])
    expect(await targetsOf('AA')).toEqual(['aa'])
  },
  async 'both nodes read and write every organization'({ store, another, orgId }) {
    const org = makeOrg()
    await another.orgs.create({ org, audit: makeAudit(org.id) })
    expect(await store.orgs.find(org.id)).toEqual(org)
    await appendTo(store, org.id, ['x'])
    await appendTo(another, orgId, ['x'])
    expect((await arrivalsOf(another, org.id)).map(({ seq }) => seq)).toEqual([1])
    expect((await arrivalsOf(store, orgId)).map(({ seq }) => seq)).toEqual([1])
  },
}
