/** Reads the Parquet files that it is given as `import` does, and prints what it found and its peak of memory. */
import { readFileSync } from 'node:fs'
import { openParquetEvents } from '../../server/parquet/read.ts'

const messages: string[] = []
for (const path of process.argv.slice(2)) {
  let events = 0
  try {
    for await (const _ of (await openParquetEvents(path))!.events()) events++
    messages.push(`${events} events`)
  } catch (error) {
    messages.push(String((error as Error).message))
  }
}
// Not `maxRSS`, which begins with the peak of the process that started this one.
const peak = /^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!
console.info(JSON.stringify({ said: messages, peakBytes: Number(peak) * 1024 }))
