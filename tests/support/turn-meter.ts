/**
 * Preloaded into the executable under test: writes the processor time of every long turn of its event loop to a file,
 * in nanoseconds, one per line. A turn ends when a timer of one millisecond can run.
 */
import { openSync, readSync, writeSync } from 'node:fs'

const writtenFromNs = 2_000_000

function startMeter(path: string): void {
  const statistics = openSync('/proc/thread-self/schedstat', 'r')
  const turns = openSync(path, 'a')
  const buffer = Buffer.alloc(80)
  const usedNs = (): number =>
    Number(buffer.toString('latin1', 0, readSync(statistics, buffer, 0, buffer.length, 0)).split(' ')[0])
  let usageBefore = usedNs()
  setInterval(() => {
    const now = usedNs()
    if (now - usageBefore >= writtenFromNs) writeSync(turns, `${now - usageBefore}\n`)
    usageBefore = usedNs()
  }, 1).unref()
}

const path = process.env['TURN_METER_FILE']
if (Bun.isMainThread && path !== undefined) startMeter(path)
