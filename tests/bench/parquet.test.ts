/** An event costs about as much in Parquet as in CSV. */
import { expect, test } from 'bun:test'
import { parquetBench } from './parquet.bench.ts'

test('an event is encoded as Parquet in at most three times the processor time of its CSV row', () => {
  const { csv, parquet } = parquetBench(4)
  console.log(`CSV ${csv.toFixed(2)} µs per event, Parquet ${parquet.toFixed(2)} µs per event`)
  expect(parquet).toBeLessThan(3 * csv)
})
