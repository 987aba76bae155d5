/** Importing an access log costs a bounded multiple of reading its lines with one regular expression. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { tempDir } from '../support/temp-dir.ts'
import { bareRead, importHere, writeLog } from './access.bench.ts'

setDefaultTimeout(60_000)

const lines = 40_000

test('a line costs a small multiple of matching it', async () => {
  using temp = tempDir('access-bench')
  const path = temp.join('access.log')
  await writeLog(path, lines)
  const read = [await bareRead(path), await bareRead(path), await bareRead(path)]
  const imported = [await importHere(path), await importHere(path), await importHere(path)]
  const findLeastMs = (runs: { processorMs: number }[]): number =>
    Math.min(...runs.map((run) => run.processorMs))
  const ratio = findLeastMs(imported) / findLeastMs(read)
  console.log(
    `µs/line: import ${((findLeastMs(imported) / lines) * 1_000).toFixed(1)}, ratio ${ratio.toFixed(1)}`,
  )
  // 12 to 17 beside other work: most of it is compiling the code and opening a store for so few lines.
  expect(ratio).toBeLessThan(40)
})
