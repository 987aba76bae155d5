/** kill -9 while sealed blocks get their texts as columns, in a database of the schema before: every event stays. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { columnsMark } from '../../db/sql/events/blocks/text-columns.ts'
import { bodiesBetween } from '../../db/sql/events/blocks/body-table.ts'
import { openReaderConnection } from '../../db/sqlite/file/connection.ts'
import { contentOf, fixtures } from '../store/fixture.ts'
import { noon } from '../store/make.ts'
import { isFull } from '../support/runs.ts'
import { tempDir } from '../support/temp-dir.ts'
import { killAfter, startProgram } from './round.ts'
import { anySeed, seeded } from './seeded.ts'

const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

/** Blocks of the two sealed segments that have columns, and those that have not, without tiny ones, and their rows. */
function blocksOf(folder: string): { columns: number; frames: number; joined: number } {
  using db = openReaderConnection(join(folder, 'sightglass.db'))
  const sql = 'SELECT place FROM event_block WHERE place % (1 << 36) < 131072 AND events > 32'
  const places = new Set(
    db
      .query<{ place: number }, []>(sql)
      .all()
      .map(({ place }) => place),
  )
  const blocks = bodiesBetween(db, 0, Number.MAX_SAFE_INTEGER).filter(({ place }) => places.has(place))
  const columns = blocks.filter(({ bodies }) => bodies[0] === columnsMark).length
  const rows = db.query<{ n: number }, []>('SELECT count(*) AS n FROM event_body').get()!.n
  return { columns, frames: blocks.length - columns, joined: blocks.length - rows }
}

/** After the migration both do the same work, so an everyday run tries one of them; tests/store upgrades both. */
const schemas = ['schema-0026-sealed', 'schema-0027-sealed']
const tried = isFull ? schemas : [schemas[seed % schemas.length]!]

const name = 'a kill during the work loses nothing, and the next start continues it'
test.each(tried)(
  `${name}: %s (CRASH_SEED=${seed})`,
  async (from) => {
    using dir = tempDir('repack-kill')
    const fixture = fixtures().find(({ name: fixtureName }) => fixtureName === from)!
    fixture.unpack(dir.path)
    const { below: randomBelow } = seeded(seed)
    const joinCounts = [blocksOf(dir.path).joined]
    for (let number = 0; number < (isFull ? 4 : 2); number++) {
      const child = startProgram('repack-child.ts', { folder: dir.path })
      await child.line((line) => line, 60_000)
      for (let tries = 0; tries < 1_000 && blocksOf(dir.path).joined === joinCounts.at(-1); tries++)
        await Bun.sleep(30)
      await killAfter(child, randomBelow(300))
      joinCounts.push(blocksOf(dir.path).joined)
    }
    expect(joinCounts).toEqual([...new Set(joinCounts)].toSorted((a, b) => a - b)) // the next start continued
    const verdict = () => openDatabaseAdmin(dir.path).verifyEvents()
    expect((await verdict()).faults).toEqual([])
    const store = await openStore({ folder: dir.path, now: noon })
    const content = await contentOf(store)
    const isDone = (): boolean => {
      const { frames, joined } = blocksOf(dir.path)
      return frames === 0 && joined > 100
    }
    for (let tries = 0; tries < 600 && !isDone(); tries++) await Bun.sleep(100)
    expect(isDone()).toBe(true)
    expect(await contentOf(store)).toEqual(content)
    await store.close()
    expect(content).toMatchObject({ ...fixture.content })
    expect((await verdict()).faults).toEqual([])
  },
  240_000,
)
