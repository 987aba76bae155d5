/** Ids of access-log events are keyed with a secret of the store, except in logs that an earlier release began. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { openStore } from '../../db/open.ts'
import type { AccessLines, Store } from '../../db/contract/store.ts'
import { agentEvents, lineReader, sourceId } from '../../server/access/agent-events.ts'
import { formatNamed } from '../../server/access/formats.ts'
import { lineBatch } from '../../server/access/line-batch.ts'
import { makeReceiver } from '../../server/access/receiver.ts'
import { bundledEvidence } from '../../server/evidence/evidence.ts'
import { gptBot, line, plainOptions } from '../support/access-logs.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAudit, makeOrg } from '../store/make.ts'

setDefaultTimeout(60_000)

const log = (count: number): string =>
  Array.from({ length: count }, (_, second) => line({ second, path: `/${second}`, userAgent: gptBot })).join(
    '',
  )

const options = { siteId: 'shop', keepQuery: [], keepAddresses: false, trustedProxies: [] }

async function withStore<T>(folder: string, work: (store: Store, orgId: string) => Promise<T>): Promise<T> {
  const store = await openStore({ folder, now: Date.now() })
  try {
    const [knownOrg] = await store.orgs.list()
    const org = knownOrg ?? makeOrg()
    if (knownOrg === undefined) await store.orgs.create({ org, audit: makeAudit(org.id) })
    return await work(store, org.id)
  } finally {
    await store.close()
  }
}

/** Sends a whole log to the receiver, as a reader of this machine does. */
async function read(store: Store, orgId: string, text: string, from = 0) {
  const receiver = makeReceiver({
    store,
    clock: { now: Date.now },
    isShared: true,
    arrivalMs: Date.now,
    fail: () => undefined,
    evidence: { current: bundledEvidence },
    evidenceMaxAgeDays: 180,
    hostNames: null,
    robots: { of: async () => null },
    disk: { sawFull: () => undefined } as never,
  })
  const sender = { orgId, keyId: 'import', door: 'access-log' as const, options, reader: null }
  const place = { source: sourceId(text), path: '/a.log', format: 'combined', heading: '', epoch: '' }
  const lines = { ...place, from, to: text.length, text: text.slice(from), cutTail: null }
  return (await receiver.store(sender, lines)).sums
}

async function idsOf(store: Store, orgId: string): Promise<string[]> {
  const query = { orgId, filter: {}, limit: 2_000, before: null, ceilingSeq: null }
  return (await store.events.page(query)).events
    .map(({ json }) => (JSON.parse(json) as { id: string }).id)
    .sort()
}

test('two stores give the same log other ids, and one store the same', async () => {
  using temp = tempDir('ids')
  const text = log(30)
  const first = await withStore(temp.join('a'), async (store, orgId) => {
    expect((await read(store, orgId, text)).stored).toBe(30)
    return idsOf(store, orgId)
  })
  const second = await withStore(temp.join('b'), async (store, orgId) => {
    await read(store, orgId, text)
    return idsOf(store, orgId)
  })
  expect(new Set([...first, ...second]).size).toBe(first.length + second.length)
  await withStore(temp.join('a'), async (store, orgId) => {
    const sums = await read(store, orgId, text)
    expect([sums.stored, sums.deduped, await idsOf(store, orgId)]).toEqual([0, 30, first])
    const [source] = await store.accessLogs.sources(orgId)
    expect(source!.source).not.toContain(sourceId(text))
  })
})

test('a log that an earlier release began goes on under its ids, and no line is stored twice', async () => {
  using temp = tempDir('ids')
  const whole = log(60)
  const half = log(30)
  await withStore(temp.path, async (store, orgId) => {
    // As releases before 0.2 stored lines: the source has its own name, and ids are plain hashes.
    const source = { name: sourceId(half), secret: null }
    const eventsOf = agentEvents(plainOptions)
    const readLine = lineReader(formatNamed('combined').open(), eventsOf, source)
    const batch = lineBatch(
      { siteId: 'shop', source: source.name, path: '/a.log', format: 'combined' },
      0,
      {},
    )
    let number = 0
    let start = 0
    let last = ''
    while (start < half.length) {
      const end = half.indexOf('\n', start)
      const { kind, timeMs, bytes, events } = readLine(half, start, end, start)
      batch.add({ number: ++number, end: end + 1, kind, timeMs, bytes, events })
      last = half.slice(start, end)
      start = end + 1
    }
    const { events, access }: { events: never[]; access: AccessLines } = batch.sent(last) as never
    const sentBatch = {
      orgId,
      keyId: 'import',
      door: 'access-log' as const,
      receivedAtMs: Date.now(),
      events,
      access,
    }
    const resultBefore = await store.events.append(sentBatch)
    expect(resultBefore.access).toMatchObject({ state: 'stored', stored: 30 })
    const ids = await idsOf(store, orgId)

    expect((await read(store, orgId, half)).deduped).toBe(30)
    expect((await read(store, orgId, whole, half.length)).stored).toBe(30)
    const idsAfter = await idsOf(store, orgId)
    expect(ids.every((id) => idsAfter.includes(id))).toBe(true)
    const requests = idsAfter.length - 2 // and the starts of two sessions: the second reader was not warmed
    expect(requests).toBe(60)
    expect((await store.accessLogs.sources(orgId)).map(({ source }) => source)).toEqual([sourceId(half)])
  })
})
