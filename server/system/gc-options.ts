/** Has the runtime collect garbage as on a small machine: by itself it lets it grow with the memory that is there. */
import { totalmem } from 'node:os'
import { setForRuntime } from './environment.ts'

/** What the runtime takes for the machine's memory. */
const memoryBytes = 384 * 1024 * 1024

/**
 * Under full load over 14 million events, on a machine of 24 GiB, resident at most: 340 MiB with the first, 322 with
 * both, and 241 and 216 in an empty store; the second takes 3 % more processor time an event. Without the first it was
 * 400 over ten million, by an earlier build. A heap else grows to twice its size before garbage is collected; with 1.5
 * it was 276 and 181, and a fifth more time.
 */
const options = {
  BUN_JSC_forceRAMSize: String(memoryBytes),
  BUN_JSC_smallHeapGrowthFactor: '1.8',
}

/**
 * The runtime reads these only when a process begins, so the server begins once more with them set: the same process,
 * some 10 ms later, before anything is open. Values of one's own are kept; smaller machines need none.
 */
function beginWithOptions(): void {
  const [verb = 'serve'] = process.argv.slice(2)
  const serves = verb === 'serve' || verb.startsWith('--')
  const machineBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  if (!Bun.isStandaloneExecutable || !serves || machineBytes <= memoryBytes) return
  const set = Object.entries(options).filter(([name, value]) => setForRuntime(name, value))
  if (set.length === 0) return
  try {
    process.execve?.(process.execPath, [process.argv0, ...process.argv.slice(2)])
  } catch {
    return // the file may be gone by now: this start goes on with more garbage
  }
}

beginWithOptions()
