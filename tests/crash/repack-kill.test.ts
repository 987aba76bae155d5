/** kill -9 while sealed blocks get their texts as columns, in a database of the schema before: every event stays. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { columnsMark } from '../../db/sql/events/blocks/text-columns.ts'
import { openReaderConnection } from '../../db/sqlite/file/connection.ts'
import { contentOf, fixtures } from '../store/fixture.ts'
import { noon } from '../store/make.ts'
import { tempDir } from '../support/temp-dir.ts'
import { killAfter, startProgram } from './round.ts'
import { anySeed, seeded } from './seeded.ts'

const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

/** Blocks of the two sealed segments that have columns, and those that have not. Tiny ones need not. */
function blocksOf(folder: string): { columns: number; frames: number } {
  using db = openReaderConnection(join(folder, 'sightglass.db'))
  const sql = `SELECT count(*) FILTER (WHERE substr(bodies, 1, 1) = ?1) AS columns,
    count(*) FILTER (WHERE substr(bodies, 1, 1) <> ?1) AS frames FROM event_body
    JOIN event_block USING (place) WHERE place % (1 << 36) < 131072 AND events > 32`
  return db.query<{ columns: number; frames: number }, [Uint8Array]>(sql).get(Uint8Array.of(columnsMark))!
}

test(`a kill during the work loses nothing, and the next start continues it (CRASH_SEED=${seed})`, async () => {
  using dir = tempDir('repack-kill')
  const fixture = fixtures().find(({ name }) => name === 'schema-0026-sealed')!
  fixture.unpack(dir.path)
  const { below } = seeded(seed)
  const done = [0]
  for (let number = 0; number < 4; number++) {
    const child = startProgram('repack-child.ts', { folder: dir.path })
    await child.line((line) => line, 60_000)
    for (let tries = 0; tries < 1_000 && blocksOf(dir.path).columns === done.at(-1); tries++)
      await Bun.sleep(30)
    await killAfter(child, below(300))
    done.push(blocksOf(dir.path).columns)
  }
  expect(done).toEqual([...new Set(done)].toSorted((a, b) => a - b)) // the next start continued
  const verdict = () => openDatabaseAdmin(dir.path).verifyEvents()
  expect((await verdict()).faults).toEqual([])
  const store = await openStore({ folder: dir.path, now: noon })
  const content = await contentOf(store)
  for (let tries = 0; tries < 600 && blocksOf(dir.path).frames > 0; tries++) await Bun.sleep(100)
  expect(blocksOf(dir.path).frames).toBe(0)
  expect(await contentOf(store)).toEqual(content)
  await store.close()
  expect(content).toMatchObject({ ...fixture.content })
  expect((await verdict()).faults).toEqual([])
}, 240_000)
