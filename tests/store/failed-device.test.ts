/** A device that fails a write: nothing is acknowledged afterwards, reads continue, a new process has all data. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openStore } from '../../db/open.ts'
import { bunProgram, run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeBatch, makeEvent, noon } from './make.ts'

const program = join(import.meta.dir, 'append-until-failure.ts')

/** A limit on file sizes fails a write like a broken device: permanently, and not because the disk is full. */
const limited = 'trap "" XFSZ; ulimit -f 4096; exec "$@"'

interface Report {
  kinds: string[]
  readable: boolean
  acknowledged: string[]
}

test('after a failed write the store only reads, and acknowledged events are stored', async () => {
  using dir = tempDir()
  const command = ['/bin/sh', '-c', limited, 'sh', ...bunProgram(program), dir.path]
  const child = run(command, { cwd: dir.path, env: {} })
  const report = await child.line((line) => JSON.parse(line) as Report, 20_000)
  expect(await child.exited).toBe(0)
  expect(report.kinds).toEqual(['io', 'io', 'io'])
  expect(report.readable).toBe(true)
  expect(report.acknowledged.length).toBeGreaterThan(5)
  const store = await openStore({ folder: dir.path, now: noon })
  for (const id of report.acknowledged) expect(await store.events.byId({ orgId: 'org_a', id })).not.toBeNull()
  expect(await store.events.byId({ orgId: 'org_a', id: 'small' })).toBeNull()
  expect(await store.events.append(makeBatch('org_a', [makeEvent('healed')]))).toMatchObject({ accepted: 1 })
  await store.close()
}, 90_000)
