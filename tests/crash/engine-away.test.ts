/** kill -9 amid retention, erasure and released room: everything fits together afterwards, and nothing comes back. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openStore, verifyAudit, verifyEvents } from '../../db/open.ts'
import { makeBatch, noon } from '../store/make.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { crashEvent, orgId } from './engine-events.ts'

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 5)
const program = join(import.meta.dir, 'engine-taker.ts')
const batchEvents = 500

test('whenever it is killed, verify is clean and the newest acknowledged events are known', async () => {
  using dir = tempDir('engine-away')
  let taken = 0
  for (let round = 0; round < rounds; round++) {
    const command = [process.execPath, program, dir.path, `${round}`]
    const child = run(command, { cwd: dir.path, env: { PATH: process.env['PATH'] ?? '' } })
    await child.line((line) => (Number(line) >= 20_000 ? line : null), 40_000) // retention has begun
    await Bun.sleep(Math.random() * 500)
    child.signal('SIGKILL')
    await child.exited
    const newest = Number(child.stdout().split('\n').slice(0, -1).at(-1))

    const { orgs, faults } = await verifyEvents(dir.path)
    expect(faults).toEqual([])
    expect(orgs[0]!.events).toBeLessThan(60 * batchEvents)
    taken += newest - orgs[0]!.events
    expect((await verifyAudit(dir.path)).faults).toEqual([])
    const store = await openStore({ folder: dir.path, now: noon })
    const last = Array.from({ length: batchEvents }, (_, n) => crashEvent(round, newest + n))
    const again = { ...makeBatch(orgId, last), receivedAtMs: noon + (round + 1) * 1_000_000 - 1 }
    expect(await store.events.append(again)).toMatchObject({ accepted: 0, deduped: batchEvents })
    await store.close()
  }
  expect(taken).toBeGreaterThan(0)
}, 180_000)
