/**
 * kill -9 of a process that appends as fast as it can, round after round on one folder, through id runs, merges, seals
 * and folds. Oracle: what was acknowledged is there once, what was not is there whole or not at all, `verify` is clean.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openStore, verifyEvents } from '../../db/open.ts'
import { makeBatch, noon } from '../store/make.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { crashEvent, orgId } from './engine-events.ts'

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 6)
const batchSizes = [1_000, 1, 1_000, 250, 1_000, 1_000] as const
const program = join(import.meta.dir, 'engine-writer.ts')

/** The acknowledged batches as [first, count]. */
async function writeUntilKilled(
  folder: string,
  round: number,
  batchEvents: number,
): Promise<[number, number][]> {
  const command = [process.execPath, program, folder, `${round}`, `${batchEvents}`]
  const child = run(command, { cwd: folder, env: { PATH: process.env['PATH'] ?? '' } })
  await child.line((line) => line, 20_000)
  await Bun.sleep(100 + Math.random() * 900)
  child.signal('SIGKILL')
  await child.exited
  const lines = child.stdout().split('\n').slice(0, -1) // the last one may be cut
  return lines.map((line) => line.split(' ').map(Number) as [number, number])
}

test('nothing acknowledged is lost or doubled, however often the process is killed', async () => {
  using dir = tempDir('engine-kill')
  let stored = 0
  for (let round = 0; round < rounds; round++) {
    const batchEvents = batchSizes[round % batchSizes.length] ?? 1
    const acknowledged = await writeUntilKilled(dir.path, round, batchEvents)
    expect(acknowledged.length).toBeGreaterThan(0)
    const firsts = new Set(acknowledged.map(([first]) => first))
    const store = await openStore({ folder: dir.path, now: noon })
    const end = Math.max(...firsts) + batchEvents * 8 // what was in flight lies before it
    for (let first = 0; first < end; first += batchEvents) {
      const events = Array.from({ length: batchEvents }, (_, n) => crashEvent(round, first + n))
      const { accepted, deduped } = await store.events.append(makeBatch(orgId, events))
      expect([0, batchEvents]).toContain(deduped)
      if (firsts.has(first)) expect(deduped).toBe(batchEvents)
      stored += accepted + deduped
    }
    expect((await store.events.overview(orgId)).total).toBe(stored)
    await store.close()
    expect(await verifyEvents(dir.path)).toEqual({ orgs: [{ orgId, events: stored }], faults: [] })
  }
}, 180_000)
