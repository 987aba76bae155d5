/** Verdicts stored before judges were recorded count as before, and the store knows since when they are recorded. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { openStore } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { openDatabase } from '../../db/sqlite/file/connection.ts'
import { migrate, migrations } from '../../db/sqlite/migrations/migrations.ts'
import { openSecretBox } from '../../server/system/encryption.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { fixtures } from './fixture.ts'
import { makeBatch, makeEvent, noon } from './make.ts'

setDefaultTimeout(60_000)

let temp: TempDir
beforeAll(() => void (temp = tempDir('upgrade-judges')))
afterAll(() => temp.remove())

function migrateFolder(folder: string, nowMs: number): void {
  using db = openDatabase(join(folder, 'sightglass.db'))
  migrate(db, migrations, nowMs)
}

describe('verdicts stored before judges were recorded', () => {
  const breakdownOf = async (store: Store, field: 'verdict' | 'vouched') => {
    const query = { orgId: 'org_first', sinceMs: 0, untilMs: null, stepMs: null, by: field }
    const { rows } = await store.events.breakdown(query)
    return new Map(
      rows
        .filter(({ count }) => count > 0)
        .map(({ value, outcome, count }) => [`${value} ${outcome}`, count]),
    )
  }

  test('count as before, and the store knows since when judges are recorded', async () => {
    const fixture = fixtures().find(({ name }) => name === 'schema-0030')!
    const folder = temp.join('judges')
    fixture.unpack(folder)
    openSecretBox(folder)
    const upgradedMs = noon + 3_600_000 // the fixture was made at noon
    migrateFolder(folder, upgradedMs)
    const store = await openStore({ folder, now: upgradedMs })
    try {
      expect((await store.health()).judgedSinceMs).toBe(upgradedMs)
      const verdictsBefore = await breakdownOf(store, 'verdict')
      // Nobody vouches for a word that is no verdict, whoever wrote it.
      const vouched = new Map([...verdictsBefore].filter(([key]) => !key.startsWith('a word of the sender')))
      expect(vouched.size).toBe(verdictsBefore.size - 1)
      expect(await breakdownOf(store, 'vouched')).toEqual(vouched)
      const reported = makeEvent('reported', { verdict: 'verified', judgedBy: 'sender' })
      await store.events.append(makeBatch('org_first', [reported]))
      expect(await breakdownOf(store, 'vouched')).toEqual(vouched)
      const verdictsAfter = await breakdownOf(store, 'verdict')
      const key = `verified ${reported.outcome}`
      expect(verdictsAfter.get(key)).toBe((verdictsBefore.get(key) ?? 0) + 1)
    } finally {
      await store.close()
    }
  })

  test('a new database records judges from its first event on', async () => {
    const store = await openStore({ folder: temp.join('new-judges'), now: noon })
    try {
      expect((await store.health()).judgedSinceMs).toBeNull()
    } finally {
      await store.close()
    }
  })
})
