/** Conformance of emptying an organization before it is removed: in steps, when due, and completely. */
import { expect } from 'bun:test'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import { failure, writesNothing, type Cases } from './subject.ts'
import { makeDelivery } from './webhook-make.ts'

const eventsOfBlock = 256

export const orgEmptyingCases: Cases = {
  async 'an organization whose time has come is emptied in steps, each of few blocks'({ store, orgId }) {
    const keptOrg = makeOrg()
    await store.orgs.create({ org: keptOrg, audit: makeAudit(keptOrg.id) })
    const events = Array.from({ length: 100 * eventsOfBlock }, (_, n) => makeEvent(`e${n}`))
    for (let from = 0; from < events.length; from += 1_000)
      await store.events.append(makeBatch(orgId, events.slice(from, from + 1_000)))
    await store.events.append(makeBatch(keptOrg.id, events.slice(0, 10)))
    for (let n = 0; n < 100; n++) {
      const delivery = makeDelivery(orgId, `${orgId}-${n}`, 'gone')
      await store.webhooks.schedule({ delivery, audit: makeAudit(orgId) })
    }
    const step = { orgId, now: noon + 10 }
    expect((await failure(store.orgs.empty(step))).kind).toBe('conflict')
    const removal = { orgId, askedAtMs: noon, dueAtMs: noon + 10, audit: makeAudit(orgId) }
    await store.orgs.requestDeletion(removal)
    expect((await failure(store.orgs.empty({ ...step, now: noon + 9 }))).kind).toBe('conflict')
    const took: number[] = []
    for (let isDone = false; !isDone;) {
      const part = await store.orgs.empty(step)
      took.push(part.events)
      isDone = part.done
    }
    expect(took.reduce((sum, count) => sum + count, 0)).toBe(events.length)
    expect(Math.max(...took)).toBeLessThanOrEqual(64 * eventsOfBlock)
    expect((await store.events.overview(orgId)).total).toBe(0)
    expect(await store.webhooks.find({ orgId, id: `${orgId}-99` })).toBeNull()
    const keep = { orgId, now: noon + 10, audit: makeAudit(orgId) }
    expect((await writesNothing(store, orgId, () => failure(store.orgs.cancelDeletion(keep)))).kind).toBe(
      'conflict',
    )
    await store.orgs.remove({ ...step, audit: makeAudit(keptOrg.id) })
    expect(await store.orgs.find(orgId)).toBeNull()
    expect((await store.events.overview(keptOrg.id)).total).toBe(10)
  },
}
