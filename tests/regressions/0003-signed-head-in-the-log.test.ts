/** The checkpoint in the log is the signed head of the file with its public key, and can be verified. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SignedHead } from '../../db/contract/audit.ts'
import { isSoundHead } from '../../server/audit/signing.ts'
import { startAppliance } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

test('a checkpoint in the log proves the same head as the line in the folder', async () => {
  using folder = tempDir('checkpoint-log')
  const dataDir = join(folder.path, 'data')
  const appliance = await startAppliance({ dataDir })
  const { stderr } = await appliance.stop()
  const logged = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SignedHead & { event: string; level: string; time: string })
    .filter(({ event }) => event === 'audit_checkpoint')
    .map(({ event: _event, level: _level, time: _time, ...head }) => head)
  const written = readFileSync(join(dataDir, 'audit-checkpoints'), 'utf8').trim().split('\n')
  expect(logged.length).toBeGreaterThan(0)
  expect(logged).toEqual(written.map((line) => JSON.parse(line) as SignedHead))
  expect(logged.map(isSoundHead)).toEqual(logged.map(() => true))
}, 90_000)
