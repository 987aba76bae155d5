/** The store inside an executable: workers are found, SQL is embedded, and no source of this checkout is read. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { workerEntries } from '../../scripts/build.ts'
import { migrations } from '../../db/sqlite/migrations/migrations.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

const root = join(import.meta.dir, '../..')

test('the store works in an executable that stands alone', async () => {
  using dir = tempDir()
  const entrypoints = ['tests/store/compiled-main.ts', ...workerEntries].map((path) => join(root, path))
  const built = await Bun.build({
    entrypoints,
    root,
    format: 'esm',
    minify: true,
    bytecode: true,
    compile: { outfile: dir.join('program'), autoloadBunfig: false, autoloadDotenv: false },
  })
  expect(built.success).toBe(true)
  const child = run([dir.join('program'), dir.join('data')], { cwd: dir.path, env: {} })
  expect(await child.exited).toBe(0)
  expect(child.stderr()).toBe('')
  expect(JSON.parse(child.stdout())).toMatchObject({
    appended: { accepted: 2, deduped: 1, rejected: [] },
    ids: ['{"id":"b"}', '{"id":"a"}'],
    schema: migrations.length,
    chains: 1,
    faults: [],
  })
}, 90_000)
