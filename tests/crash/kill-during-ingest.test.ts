/**
 * Repeats kill -9 during ingest on one data folder. Oracle: every acknowledged event is stored once after the restart,
 * and a resent event counts as deduped exactly when it is stored.
 */
import { expect, test } from 'bun:test'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event, type TestEvent } from '../support/events.ts'
import { isFull } from '../support/runs.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { prepareFolder } from './prepared-folder.ts'
import { anySeed, seeded } from './seeded.ts'

const rounds = Number(process.env['CRASH_ROUNDS'] ?? (isFull ? 12 : 5))
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

const { below: randomBelow } = seeded(seed)

interface Record {
  acknowledged: Set<string>
  unanswered: TestEvent[][] // requests whose response the kill prevented
}

async function postUntilKilled(
  appliance: Appliance,
  key: string,
  round: number,
  record: Record,
): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const sender = async (connection: number) => {
    for (let request = 0; ; request++) {
      const id = (index: number) => `r${round}c${connection}q${request}i${index}`
      const events = Array.from({ length: 1 + randomBelow(20) }, (_, index) => event(id(index)))
      try {
        const body = JSON.stringify({ events })
        const response = await fetch(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body })
        const answer = (await response.json()) as { accepted: number }
        expect([response.status, answer.accepted]).toEqual([202, events.length])
        for (const sentEvent of events) record.acknowledged.add(sentEvent.id)
      } catch (error) {
        if (error instanceof Error && error.name === 'AssertionError') throw error
        record.unanswered.push(events)
        return
      }
    }
  }
  const countBefore = record.acknowledged.size
  const senders = Array.from({ length: 8 }, (_, connection) => sender(connection))
  const extraMs = randomBelow(600)
  await until(() => record.acknowledged.size > countBefore + extraMs)
  await appliance.kill()
  await Promise.all(senders)
}

async function storedIds(url: string, key: string): Promise<string[]> {
  const response = await fetch(`${url}/v1/traces?limit=200`, { headers: { authorization: `Bearer ${key}` } })
  let page = (await response.json()) as { events: TestEvent[]; nextCursor: string | null }
  const ids = page.events.map((pageEvent) => pageEvent.id)
  while (page.nextCursor !== null) {
    const next = await fetch(`${url}/v1/traces?limit=200&cursor=${page.nextCursor}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    page = (await next.json()) as typeof page
    ids.push(...page.events.map((pageEvent) => pageEvent.id))
  }
  return ids
}

const title = `${rounds} rounds of kill -9 during ingest lose and duplicate nothing (CRASH_SEED=${seed})`

test(
  title,
  async () => {
    using dir = tempDir('crash')
    const dataDir = dir.join('data')
    const record: Record = { acknowledged: new Set(), unanswered: [] }
    const keys = await prepareFolder(dir)
    keys.copyTo(dataDir)
    for (let round = 0; round < rounds; round++) {
      const appliance = await startAppliance({ dataDir })
      await postUntilKilled(appliance, keys.ingest, round, record)
    }
    const appliance = await startAppliance({ dataDir })
    const ids = await storedIds(appliance.url, keys.secret)
    const stored = new Set(ids)
    expect(ids.length).toBe(stored.size)
    const lost = [...record.acknowledged].filter((id) => !stored.has(id))
    expect(lost).toEqual([])
    // A request is stored completely or not at all, and a sender that repeats it learns which.
    for (const events of record.unanswered) {
      const keptCount = events.filter((sentEvent) => stored.has(sentEvent.id)).length
      expect([0, events.length]).toContain(keptCount)
      const response = await fetch(`${appliance.url}/v1/sdk/events`, {
        method: 'POST',
        headers: { authorization: `Bearer ${keys.ingest}`, 'content-type': 'application/json' },
        body: JSON.stringify({ events }),
      })
      expect(await response.json()).toEqual({
        ok: true,
        accepted: events.length - keptCount,
        deduped: keptCount,
      })
    }
    expect(record.acknowledged.size).toBeGreaterThan(rounds * 50)
    const { acknowledged, unanswered } = record
    console.log(`${acknowledged.size} acknowledged, 0 lost, 0 doubled, ${unanswered.length} cut off`)
    await appliance.stop()
  },
  120_000,
)
