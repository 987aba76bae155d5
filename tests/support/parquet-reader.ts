/** Reads the Parquet files that it is given as `import` does, and prints what it found and its peak of memory. */
import { openParquetEvents } from '../../server/parquet/read.ts'

const said: string[] = []
for (const path of process.argv.slice(2)) {
  let events = 0
  try {
    for await (const _ of (await openParquetEvents(path))!.events()) events++
    said.push(`${events} events`)
  } catch (error) {
    said.push(String((error as Error).message))
  }
}
console.info(JSON.stringify({ said, peakBytes: process.resourceUsage().maxRSS * 1024 }))
