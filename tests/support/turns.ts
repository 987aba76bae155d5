/** Starts the executable with a meter of the turns of its HTTP thread, and measures what a piece of work costs it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAppliance, type Appliance, type ApplianceOptions } from './binary.ts'
import { tempDir } from './temp-dir.ts'

export interface Cost {
  longestTurnMs: number // processor time of the HTTP thread
  threadMs: number // of the HTTP thread in all
  processMs: number // of all threads
  peakMiB: number // resident
}

export interface Metered extends AsyncDisposable {
  appliance: Appliance
  /** Runs the work and returns what the process needed meanwhile. */
  cost(work: () => Promise<unknown>): Promise<Cost>
}

const meter = join(import.meta.dir, 'turn-meter.ts')

export async function startMetered(options: ApplianceOptions = {}): Promise<Metered> {
  const folder = tempDir('turns')
  const turns = join(folder.path, 'turns')
  writeFileSync(turns, '')
  const env = { ...options.env, BUN_OPTIONS: `--preload ${meter}`, TURN_METER_FILE: turns }
  const appliance = await startAppliance({ ...options, env })
  const { pid } = appliance
  return {
    appliance,
    async cost(work) {
      await Bun.sleep(20) // the turn before ends
      const start = readFileSync(turns, 'utf8').length
      const usageBefore = usedBy(pid)
      writeFileSync(`/proc/${pid}/clear_refs`, '5') // the peak begins anew
      await work()
      await Bun.sleep(20) // the last turn is written
      const usageAfter = usedBy(pid)
      const written = readFileSync(turns, 'utf8').slice(start).split('\n').map(Number)
      return {
        longestTurnMs: Math.max(0, ...written) / 1e6,
        threadMs: usageAfter.threadMs - usageBefore.threadMs,
        processMs: usageAfter.processMs - usageBefore.processMs,
        peakMiB: Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024,
      }
    },
    async [Symbol.asyncDispose]() {
      await appliance.stop()
      folder.remove()
    },
  }
}

/** Clock ticks of the kernel per second are 100 on every Linux. */
const msPerTick = 10

function usedBy(pid: number): { threadMs: number; processMs: number } {
  const thread = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')
  return { threadMs: Number(thread.split(' ')[0]) / 1e6, processMs: processorMs(pid) }
}

/** Processor time of a process since its start, of all its threads. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * msPerTick
}
