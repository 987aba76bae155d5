/** Conformance of alert rules and alerts: one message per state, pending ones, and their audit entries. */
import { expect } from 'bun:test'
import type { MeasureDefinition, Rule } from '../../db/contract/alerts.ts'
import { makeAudit } from './make.ts'
import { failure, writesNothing, writesOnce, type Cases } from './subject.ts'
import { drain, fixedRule, makeDelivery, makeEndpoint, openFiring } from './webhook-make.ts'

const definition: MeasureDefinition = {
  filter: { type: ['agent.*'], page: ['/a"b', ''] },
  measure: 'share',
  of: { outcome: ['blocked'] },
  condition: { kind: 'above', value: 0.25 },
  windowMinutes: 60,
  forMinutes: 5,
  keepFiringMinutes: 10,
  noData: 'ok',
  eventsMin: 20,
  groupBy: 'vendor',
  groupsMax: 20,
  notifyPending: false,
}

export const ruleCases: Cases = {
  async 'one message an incident, one resolve, and none for a rule that is gone'({ store, orgId }) {
    await store.webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, 'ep_2'), audit: makeAudit(orgId) })
    const rule = { id: 'rul_1', orgId, endpointId: 'ep_2', kind: 'silence' as const, createdAtMs: 1 }
    const numbers = { threshold: null, minutes: 5, eventsMin: null }
    await store.webhooks.createRule({
      rule: { ...rule, ...numbers, ...fixedRule },
      rulesMax: 9,
      audit: makeAudit(orgId),
    })
    const open = (id: string, isOnce = false) => {
      const times = { ...openFiring }
      const incident = { id, orgId, ruleId: 'rul_1', subject: '', ...times, data: { minutes: 5 } }
      return store.webhooks.openIncident({
        incident,
        delivery: makeDelivery(orgId, `wh-${id}`, 'ep_2', { endpointId: 'ep_2' }),
        once: isOnce,
        audit: makeAudit(orgId),
      })
    }
    const resolve = (id: string) => {
      return store.webhooks.resolveIncident({
        id,
        now: 9,
        delivery: makeDelivery(orgId, `re-${id}`, 'ep_2', { endpointId: 'ep_2' }),
        audit: makeAudit(orgId),
      })
    }
    expect([await open('i1'), await open('i2')]).toEqual([true, false])
    expect([await resolve('i1'), await resolve('i1')]).toEqual([true, false])
    expect([await open('i3', true), await open('i4')]).toEqual([false, true])
    expect(await store.webhooks.openIncidents(null)).toMatchObject([{ id: 'i4', data: { minutes: 5 } }])
    const listed = async (isOpen: boolean | null) =>
      (await store.webhooks.incidents({ orgId, isOpen, limit: 9 })).map(({ id }) => id)
    expect([await listed(null), await listed(true), await listed(false)]).toEqual([
      ['i4', 'i1'],
      ['i4'],
      ['i1'],
    ])
    await store.webhooks.deleteRule({ orgId, ruleId: 'rul_1', audit: makeAudit(orgId) })
    expect(await store.webhooks.openIncidents(orgId)).toEqual([])
    expect(await open('i5')).toBe(false)
  },

  async 'an open alert is acknowledged once, a resolved one is not'({ store, orgId }) {
    const { webhooks } = store
    const endpointId = `ep-${orgId}`
    const ruleId = `rul-${orgId}`
    await webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, endpointId), audit: makeAudit(orgId) })
    const numbers = { threshold: null, minutes: 5, eventsMin: null }
    const rule = {
      id: ruleId,
      orgId,
      endpointId,
      kind: 'silence' as const,
      createdAtMs: 1,
      ...numbers,
      ...fixedRule,
    }
    await webhooks.createRule({ rule, rulesMax: 9, audit: makeAudit(orgId) })
    const open = { ...openFiring }
    for (const id of ['known', 'over']) {
      const incident = { id: `${id}-${orgId}`, orgId, ruleId, subject: id, ...open, data: {} }
      const delivery = makeDelivery(orgId, `open-${id}-${orgId}`, endpointId, { endpointId })
      expect(await webhooks.openIncident({ incident, delivery, once: false, audit: makeAudit(orgId) })).toBe(
        true,
      )
    }
    const command = (id: string) => {
      return { orgId, id: `${id}-${orgId}`, now: 7, by: 'usr_1', audit: makeAudit(orgId) }
    }
    const first = command('known')
    const acknowledged = await writesOnce(store, first.audit, () => webhooks.acknowledgeIncident(first))
    expect(acknowledged).toMatchObject({ acknowledgedAtMs: 7, acknowledgedBy: 'usr_1' })
    const again = { ...command('known'), now: 8 }
    expect(await writesNothing(store, orgId, () => webhooks.acknowledgeIncident(again))).toEqual(acknowledged)
    const delivery = makeDelivery(orgId, `end-${orgId}`, endpointId, { endpointId })
    const end = { id: `over-${orgId}`, now: 8, delivery, audit: makeAudit(orgId) }
    expect(await webhooks.resolveIncident(end)).toBe(true)
    const late = await writesNothing(store, orgId, () =>
      failure(webhooks.acknowledgeIncident(command('over'))),
    )
    const unknown = await writesNothing(store, orgId, () =>
      failure(webhooks.acknowledgeIncident(command('none'))),
    )
    expect([late.kind, unknown.kind]).toEqual(['conflict', 'not_found'])
    await drain(store)
    expect(await webhooks.nextDueAt(0)).toBeNull()
  },

  async 'of rules that are created at once as many are stored as are allowed'({ store, orgId }) {
    const { webhooks } = store
    const endpointId = `ep-l-${orgId}`
    await webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, endpointId), audit: makeAudit(orgId) })
    const numbers = { threshold: null, minutes: 5, eventsMin: null }
    const create = (n: number) =>
      webhooks.createRule({
        rule: {
          id: `rul-${n}-${orgId}`,
          orgId,
          endpointId,
          kind: 'silence',
          createdAtMs: n,
          ...numbers,
          ...fixedRule,
        },
        rulesMax: 5,
        audit: makeAudit(orgId),
      })
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, (_, n) => create(n)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
    expect(await webhooks.rules(orgId)).toHaveLength(5)
    expect((await writesNothing(store, orgId, () => failure(create(20)))).kind).toBe('conflict')
    const [{ id: ruleId } = { id: '' }] = await webhooks.rules(orgId)
    await webhooks.deleteRule({ orgId, ruleId, audit: makeAudit(orgId) })
    await create(21)
  },

  async 'each change of a rule is one audit entry; of a strange one, none'({ store, orgId }) {
    const { webhooks } = store
    await webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, 'ep_3'), audit: makeAudit(orgId) })
    const numbers = { threshold: 0.5, minutes: null, eventsMin: 20 }
    const kind = 'blocked_share' as const
    const rule = { id: 'rul_c', orgId, endpointId: 'ep_3', kind, createdAtMs: 1, ...numbers, ...fixedRule }
    const create = { rule, rulesMax: 9, audit: makeAudit(orgId) }
    await writesOnce(store, create.audit, () => webhooks.createRule(create))
    const numbersGiven = { ...numbers, threshold: 0.75 }
    const change = (targetOrgId: string) => ({
      orgId: targetOrgId,
      ruleId: 'rul_c',
      change: numbersGiven,
      audit: makeAudit(orgId),
    })
    const first = change(orgId)
    await writesOnce(store, first.audit, () => webhooks.changeRule(first))
    expect((await webhooks.rules(orgId)).find(({ id }) => id === 'rul_c')).toEqual({
      ...rule,
      ...numbersGiven,
    })
    const error = await writesNothing(store, orgId, () => failure(webhooks.changeRule(change('org_none'))))
    expect(error.kind).toBe('not_found')
    const remove = { orgId, ruleId: 'rul_c', audit: makeAudit(orgId) }
    await writesOnce(store, remove.audit, () => webhooks.deleteRule(remove))
  },

  async 'a rule that compares a measure comes back as it was, changed and silenced'({ store, orgId }) {
    const { webhooks } = store
    const endpointId = `ep-m-${orgId}`
    const id = `rul-m-${orgId}`
    await webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, endpointId), audit: makeAudit(orgId) })
    const rule: Rule = {
      id,
      orgId,
      endpointId,
      kind: 'measure',
      threshold: null,
      minutes: null,
      eventsMin: null,
      name: 'A “name” \u202e',
      definition,
      fromFile: true,
      silencedUntilMs: null,
      createdAtMs: 1,
    }
    await webhooks.createRule({ rule, rulesMax: 9, audit: makeAudit(orgId) })
    expect(await webhooks.rules(orgId)).toEqual([rule])
    const change = { definition: { ...definition, groupBy: null }, name: 'new', silencedUntilMs: 77 }
    await webhooks.changeRule({ orgId, ruleId: id, change, audit: makeAudit(orgId) })
    expect(await webhooks.rules(orgId)).toEqual([{ ...rule, ...change }])
  },

  async 'a pending alert fires once, or clears without a trace but its audit entries'({ store, orgId }) {
    const { webhooks } = store
    const endpointId = `ep-p-${orgId}`
    const ruleId = `rul-p-${orgId}`
    await webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, endpointId), audit: makeAudit(orgId) })
    const rule: Rule = {
      id: ruleId,
      orgId,
      endpointId,
      kind: 'measure',
      threshold: null,
      minutes: null,
      eventsMin: null,
      ...fixedRule,
      name: 'x',
      definition,
      createdAtMs: 1,
    }
    await webhooks.createRule({ rule, rulesMax: 9, audit: makeAudit(orgId) })
    const deliveryOf = (name: string) => makeDelivery(orgId, `${name}-${orgId}`, endpointId, { endpointId })
    const open = (id: string, subject: string) => ({
      incident: {
        id: `${id}-${orgId}`,
        orgId,
        ruleId,
        subject,
        ...openFiring,
        state: 'pending' as const,
        data: {},
      },
      delivery: null,
      once: false,
      audit: makeAudit(orgId),
    })
    const fires = open('fires', 'a')
    const clears = open('clears', 'b')
    await writesOnce(store, fires.audit, () => webhooks.openIncident(fires))
    await webhooks.openIncident(clears)
    expect(await writesNothing(store, orgId, () => webhooks.openIncident(open('again', 'a')))).toBe(false)
    expect(await webhooks.nextDueAt(0)).toBeNull()
    const fire = (id: string) => ({
      id: `${id}-${orgId}`,
      now: 8,
      data: { measure: 'count' },
      delivery: deliveryOf(`fire-${id}`),
      audit: makeAudit(orgId),
    })
    const first = fire('fires')
    expect(await writesOnce(store, first.audit, () => webhooks.fireIncident(first))).toBe(true)
    expect(await writesNothing(store, orgId, () => webhooks.fireIncident(fire('fires')))).toBe(false)
    await webhooks.noteIncident({ id: `fires-${orgId}`, clearSinceMs: 9 })
    const openIncidents = async () =>
      (await webhooks.openIncidents(orgId)).toSorted((a, b) => (a.subject < b.subject ? -1 : 1))
    expect(await openIncidents()).toMatchObject([
      { subject: 'a', state: 'firing', openedAtMs: 8, clearSinceMs: 9, data: { measure: 'count' } },
      { subject: 'b', state: 'pending', openedAtMs: 1, clearSinceMs: null },
    ])
    const acknowledge = { orgId, id: `clears-${orgId}`, now: 9, by: 'usr_1', audit: makeAudit(orgId) }
    expect(
      (await writesNothing(store, orgId, () => failure(webhooks.acknowledgeIncident(acknowledge)))).kind,
    ).toBe('conflict')
    const end = { id: `clears-${orgId}`, now: 10, delivery: null, audit: makeAudit(orgId) }
    expect(await writesOnce(store, end.audit, () => webhooks.resolveIncident(end))).toBe(true)
    expect(
      (await webhooks.incidents({ orgId, isOpen: null, limit: 9 })).map(({ subject }) => subject),
    ).toEqual(['a'])
    expect(await webhooks.openIncident(open('later', 'b'))).toBe(true)
    await webhooks.deleteRule({ orgId, ruleId, audit: makeAudit(orgId) })
    const remainingIncidents = await webhooks.incidents({ orgId, isOpen: null, limit: 9 })
    expect(remainingIncidents.map(({ subject, resolvedAtMs }) => [subject, resolvedAtMs !== null])).toEqual([
      ['a', true],
    ])
    await drain(store)
  },
}
