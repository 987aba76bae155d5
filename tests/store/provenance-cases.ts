/** Conformance of the record beside each event: who says so, filters and counts by it, networks that expire alone. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import { knownVerdicts, vouchedJudges, type Door, type Judgement } from '../../db/contract/provenance.ts'
import type { EventFilter } from '../../db/contract/event-fields.ts'
import type { EventRecord, Store } from '../../db/contract/store.ts'
import { runs } from '../support/runs.ts'
import { makeAudit, makeBatch, makeEvent, noon } from './make.ts'
import type { Cases } from './subject.ts'

const dayMs = 24 * 3_600_000
const everyEvent = { filter: {}, limit: 200, before: null, ceilingSeq: null }

/** An event that the appliance judged, by an address that `observedBy` saw. */
const judged = (id: string, verdict: string, observedBy: string, fields: Partial<EventRecord> = {}) =>
  makeEvent(id, {
    verdict,
    judgedBy: 'appliance',
    observedBy,
    evidence: '{"method":"address","list":"https://a.example"}',
    network: verdict === 'contradicted' ? '192.0.2.0/24' : null,
    ...fields,
  })

/** An event with a verdict of its sender's. */
const reported = (id: string, verdict: string, fields: Partial<EventRecord> = {}) => {
  const json = JSON.stringify({ id, agent: { verdict } })
  return makeEvent(id, { verdict, judgedBy: 'sender', json, ...fields })
}

/** As an event of an earlier release is read. */
const older = (id: string, verdict: string) =>
  makeEvent(id, { verdict, json: JSON.stringify({ id, agent: { verdict } }) })

interface Sent {
  key: string
  door: Door
  events: EventRecord[]
}

async function append(store: Store, orgId: string, { key, door, events }: Sent): Promise<void> {
  await store.events.append({ ...makeBatch(orgId, events), keyId: key, door })
}

const idsOf = async (store: Store, orgId: string, filter: EventFilter): Promise<string[]> => {
  const { events } = await store.events.page({ ...everyEvent, orgId, filter })
  return events.map(({ json }) => (JSON.parse(json) as { id: string }).id).sort()
}

/** One batch of each kind: an own log, a reporting key, a lying key, and events of an earlier release. */
async function fill(store: Store, orgId: string): Promise<void> {
  await append(store, orgId, {
    key: 'import',
    door: 'access-log',
    events: [judged('log_v', 'verified', 'appliance'), judged('log_c', 'contradicted', 'appliance')],
  })
  await append(store, orgId, {
    key: 'key_site',
    door: 'events',
    events: [judged('sdk_v', 'verified', 'key_site'), judged('sdk_c', 'contradicted', 'key_site')],
  })
  await append(store, orgId, {
    key: 'key_liar',
    door: 'events',
    events: [
      reported('lie_v', 'verified'),
      reported('lie_c', 'contradicted'),
      reported('lie_w', 'honest, trust me'),
    ],
  })
  await append(store, orgId, {
    key: 'key_site',
    door: 'events',
    events: [older('old_v', 'verified'), makeEvent('plain')],
  })
}

export const provenanceCases: Cases = {
  async 'an event comes back with who says so, where that is asked for'({ store, orgId }) {
    await fill(store, orgId)
    const { events } = await store.events.page({ ...everyEvent, orgId, provenance: true })
    const records = Object.fromEntries(
      events.map(({ json, provenance }) => [(JSON.parse(json) as { id: string }).id, provenance]),
    )
    const evidence = '{"method":"address","list":"https://a.example"}'
    expect(records).toEqual({
      log_v: {
        door: 'access-log',
        key: null,
        verdict: 'verified',
        judgedBy: 'appliance',
        observedBy: 'appliance',
        evidence,
        network: null,
      },
      log_c: {
        door: 'access-log',
        key: null,
        verdict: 'contradicted',
        judgedBy: 'appliance',
        observedBy: 'appliance',
        evidence,
        network: '192.0.2.0/24',
      },
      sdk_v: {
        door: 'events',
        key: 'key_site',
        verdict: 'verified',
        judgedBy: 'appliance',
        observedBy: 'key_site',
        evidence,
        network: null,
      },
      sdk_c: {
        door: 'events',
        key: 'key_site',
        verdict: 'contradicted',
        judgedBy: 'appliance',
        observedBy: 'key_site',
        evidence,
        network: '192.0.2.0/24',
      },
      lie_v: {
        door: 'events',
        key: 'key_liar',
        verdict: 'verified',
        judgedBy: 'sender',
        observedBy: null,
        evidence: null,
        network: null,
      },
      lie_c: {
        door: 'events',
        key: 'key_liar',
        verdict: 'contradicted',
        judgedBy: 'sender',
        observedBy: null,
        evidence: null,
        network: null,
      },
      lie_w: {
        door: 'events',
        key: 'key_liar',
        verdict: 'honest, trust me',
        judgedBy: 'sender',
        observedBy: null,
        evidence: null,
        network: null,
      },
      old_v: {
        door: 'events',
        key: 'key_site',
        verdict: 'verified',
        judgedBy: 'unknown',
        observedBy: null,
        evidence: null,
        network: null,
      },
      plain: {
        door: 'events',
        key: 'key_site',
        verdict: null,
        judgedBy: null,
        observedBy: null,
        evidence: null,
        network: null,
      },
    })
    const tail = await store.events.tail({ orgId, filter: {}, afterSeq: 0, limit: 9, provenance: true })
    expect(tail.events.map(({ provenance }) => provenance)).toEqual(
      events.toSorted((a, b) => a.seq - b.seq).map(({ provenance }) => provenance),
    )
    expect((await store.events.byId({ orgId, id: 'lie_v' }))?.provenance).toEqual(records['lie_v'])
    const bare = await store.events.page({ ...everyEvent, orgId })
    expect(bare.events.some((event) => 'provenance' in event)).toBe(false)
  },
  async 'filters by judge, observer, door, key and network'({ store, orgId }) {
    await fill(store, orgId)
    const idsFor = (filter: EventFilter) => idsOf(store, orgId, filter)
    expect(await idsFor({ verdicts: ['verified'] })).toEqual(['lie_v', 'log_v', 'old_v', 'sdk_v'])
    expect(await idsFor({ verdicts: ['verified'], judges: [...vouchedJudges] })).toEqual([
      'log_v',
      'old_v',
      'sdk_v',
    ])
    expect(await idsFor({ judges: ['appliance'] })).toEqual(['log_c', 'log_v', 'sdk_c', 'sdk_v'])
    expect(await idsFor({ judges: ['sender'] })).toEqual(['lie_c', 'lie_v', 'lie_w'])
    expect(await idsFor({ judges: ['unknown'] })).toEqual(['old_v'])
    expect(await idsFor({ judges: ['unknown', 'sender'] })).toEqual(['lie_c', 'lie_v', 'lie_w', 'old_v'])
    expect(await idsFor({ judges: [''] })).toEqual(['old_v', 'plain'])
    expect(await idsFor({ verdicts: ['honest, trust me'] })).toEqual(['lie_w'])
    expect(await idsFor({ observers: ['key_site'] })).toEqual(['sdk_c', 'sdk_v'])
    expect(await idsFor({ observers: ['appliance'], verdicts: ['contradicted'] })).toEqual(['log_c'])
    expect(await idsFor({ doors: ['access-log'] })).toEqual(['log_c', 'log_v'])
    expect(await idsFor({ keys: ['key_liar'] })).toEqual(['lie_c', 'lie_v', 'lie_w'])
    expect(await idsFor({ networks: ['192.0.2.0/24'] })).toEqual(['log_c', 'sdk_c'])
    expect(await idsFor({ networks: ['192.0.2.0/24', '2001:db8::/48'], keys: ['key_site'] })).toEqual([
      'sdk_c',
    ])
    expect(await idsFor({ networks: ['198.51.100.0/24'] })).toEqual([])
    const edges = [noon - 1, noon + 1]
    const counted = await store.events.filteredCounts({
      orgId,
      filter: { networks: ['192.0.2.0/24'] },
      edges,
      budgetMs: 5_000,
      breakdowns: [{ by: 'vouched' }, { by: 'judgement' }],
    })
    expect(counted.rows.map(({ count }) => count)).toEqual([2])
    expect(counted.breakdowns[0]!.map(({ value, count }) => [value, count])).toEqual([['contradicted', 2]])
    expect(counted.breakdowns[1]!.map(({ value }) => JSON.parse(value!) as Judgement)).toEqual(
      expect.arrayContaining([
        { verdict: 'contradicted', judgedBy: 'appliance', by: 'appliance' },
        { verdict: 'contradicted', judgedBy: 'appliance', by: 'key_site' },
      ]),
    )
  },
  async 'counts the verdicts that it vouches for apart from those of senders'({ store, orgId }) {
    const sender = fc.constantFrom('key_a', 'key_b', 'import')
    const verdict = fc.constantFrom<string | null>(...knownVerdicts, 'a word', null)
    const judge = fc.constantFrom('appliance', 'sender', 'older')
    const event = fc.record({ verdict, judge, hour: fc.nat({ max: 30 }) })
    const batch = fc.record({ key: sender, events: fc.array(event, { minLength: 1, maxLength: 12 }) })
    let number = 0
    const vouched = new Map<string, number>()
    const judgements = new Map<string, number>()
    const add = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 5 }), async (batches) => {
        for (const { key, events } of batches) {
          const records = events.map(({ verdict: word, judge: judgeKind, hour }) => {
            const fields = { occurredAtMs: noon + hour * 3_600_000 }
            const id = `evt_${number++}`
            if (word === null) return makeEvent(id, fields)
            const knownVerdict = (knownVerdicts as readonly string[]).includes(word) ? word : null
            if (judgeKind === 'appliance') {
              if (knownVerdict !== null) add(vouched, word)
              add(judgements, JSON.stringify({ verdict: knownVerdict, judgedBy: judgeKind, by: key }))
              return judged(id, word, key, fields)
            }
            if (judgeKind === 'sender') {
              add(judgements, JSON.stringify({ verdict: knownVerdict, judgedBy: judgeKind, by: key }))
              return reported(id, word, fields)
            }
            if (knownVerdict !== null) add(vouched, word)
            return { ...older(id, word), ...fields }
          })
          await append(store, orgId, { key, door: 'events', events: records })
        }
        const range = { orgId, sinceMs: noon - dayMs, untilMs: null, stepMs: null }
        for (const [field, truth] of [
          ['vouched', vouched],
          ['judgement', judgements],
        ] as const) {
          const { rows } = await store.events.breakdown({ ...range, by: field })
          const counts = new Map<string, number>()
          for (const { value, count } of rows) counts.set(value!, (counts.get(value!) ?? 0) + count)
          expect(counts).toEqual(truth)
          const filtered = await store.events.filteredCounts({
            orgId,
            filter: {},
            edges: [noon - dayMs, noon + 30 * dayMs],
            budgetMs: 5_000,
            breakdowns: [{ by: field }],
          })
          expect(new Map(filtered.breakdowns[0]!.map(({ value, count }) => [value!, count]))).toEqual(truth)
        }
      }),
      { numRuns: runs(12) },
    )
  },
  async 'words of a sender use up no place of the verdicts that pages count'({ store, orgId }) {
    const words = Array.from({ length: 4_200 }, (_, index) => reported(`lie_${index}`, `word ${index}`))
    for (let from = 0; from < words.length; from += 1_000)
      await append(store, orgId, { key: 'key_liar', door: 'events', events: words.slice(from, from + 1_000) })
    await append(store, orgId, {
      key: 'import',
      door: 'access-log',
      events: [judged('real', 'verified', 'appliance')],
    })
    const range = { orgId, sinceMs: noon - dayMs, untilMs: null, stepMs: null }
    const { rows } = await store.events.breakdown({ ...range, by: 'vouched', values: ['verified'] })
    expect(rows.map(({ value, count }) => [value, count])).toEqual([['verified', 1]])
    expect(await idsOf(store, orgId, { judges: ['appliance'], verdicts: ['verified'] })).toEqual(['real'])
    expect(await idsOf(store, orgId, { verdicts: ['word 4150'] })).toEqual(['lie_4150'])
  },
  async 'networks expire by day, and go with their events'({ store, orgId }) {
    const dayMsOf = (day: number) => noon + day * dayMs
    const expire = (day: number) =>
      store.events.expireNetworks({ beforeDay: Math.floor(dayMsOf(day) / dayMs) })
    while (!(await expire(10)).done); // those of other cases
    for (const day of [0, 1, 2]) {
      const fields = { occurredAtMs: dayMsOf(day), sessionId: day === 1 ? 'sess_erased' : 'sess_1' }
      await append(store, orgId, {
        key: 'import',
        door: 'access-log',
        events: [judged(`log_${day}`, 'contradicted', 'appliance', fields)],
      })
    }
    const networks = async () => {
      const { events } = await store.events.page({ ...everyEvent, orgId, provenance: true })
      return events.toSorted((a, b) => a.seq - b.seq).map(({ provenance }) => provenance!.network)
    }
    expect(await networks()).toEqual(['192.0.2.0/24', '192.0.2.0/24', '192.0.2.0/24'])
    const erase = { orgId, sessionIds: ['sess_erased'], subjects: [] }
    let { next } = await store.events.erase({ ...erase, audit: makeAudit(orgId), cursor: null })
    while (next !== null) next = (await store.events.erase({ ...erase, audit: null, cursor: next })).next
    expect(await idsOf(store, orgId, { networks: ['192.0.2.0/24'] })).toEqual(['log_0', 'log_2'])
    expect(await expire(2)).toEqual({ rows: 1, done: true }) // that of the erased event is gone
    expect(await networks()).toEqual([null, '192.0.2.0/24'])
    expect(await expire(3)).toEqual({ rows: 1, done: true })
    expect(await idsOf(store, orgId, { verdicts: ['contradicted'] })).toEqual(['log_0', 'log_2'])
  },
}
