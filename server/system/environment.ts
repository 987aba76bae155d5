/**
 * The only reader of the process environment. `main.ts` imports it first: the server needs runtime options that take
 * effect at process start, and NODE_ENV before any library reads it.
 */
import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'

/** JavaScriptCore collects garbage as if the machine had this much; by default the heap grows with memory. */
const memoryBytes = 384 * 1024 * 1024

/**
 * Returns unused pages every second, not every 100 ms: a busy server takes them back at once, page by page. Saves 5 to
 * 11 % of the processor time per event over HTTP; the peak of memory stays.
 */
const purgeOptions = {
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '1000',
  MIMALLOC_PURGE_DELAY: '1000',
}

/**
 * Peak resident memory under full load over 14 million events, on a machine with 24 GiB: 340 MiB with the first option,
 * 322 MiB with both; in an empty store 241 and 216 MiB. The second costs 3 % more CPU per event. Without the first,
 * an earlier build peaked at 400 MiB after 10 million events. By default a heap doubles before garbage is collected; a
 * growth factor of 1.5 gives 276 and 181 MiB and costs 20 % more time, one of 2.4 takes 57 MiB more and about 7 % less.
 */
const smallOptions = {
  BUN_JSC_forceRAMSize: String(memoryBytes),
  BUN_JSC_smallHeapGrowthFactor: '1.8',
  BUN_JSC_largeHeapSize: String(8 * 1024 * 1024), // the default
  BUN_JSC_smallHeapSize: String(8 * 1024 * 1024), // of readers; the default is 1 MiB
  ...purgeOptions,
}

/**
 * A thread that is no reader may allocate 64 MiB before its heap is collected, not 8, which full load fills forty times
 * a second. Over HTTP a database of 100 million events then takes 138,000 events/s, not 99,000, and an empty one
 * 197,000 to 215,000, not 173,000. The peaks are 600 and 490 MiB, not 520 and 300. With 32 MiB nothing is gained, with
 * 128 no more. Beside a hostile organization the peak is 480 to 520 MiB; with 64 for readers too it is 560 to 680.
 */
export const gcOptions = { ...smallOptions, BUN_JSC_largeHeapSize: String(64 * 1024 * 1024) }
const largeMemoryMin = 1024 * 1024 * 1024

/** Verbs that run for long, besides `serve`: they end with a peak that is 14 MiB lower, for 5 % more processor time. */
const longVerbs = ['import', 'watch']
const longVerbGrowth = '1.6'

/**
 * A node of a shared database has three threads more that parse and pack events, and a database server beside it is
 * what its machine is bought for. With these options three nodes take a sixth less processor time per event: 16 to
 * 17 µs instead of 19 beside other programs, 13.3 on an idle machine. A node takes about 280 MiB instead of 210.
 */
export const nodeOptions = {
  ...smallOptions,
  BUN_JSC_forceRAMSize: String(2 * memoryBytes),
  BUN_JSC_smallHeapGrowthFactor: '3',
}

const machineBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)

/**
 * Bun reads these only at process start, so the server re-executes itself with them: the same process, about 10 ms
 * later, before anything is open. Values set by the operator win; machines with less memory need none.
 */
function restartWithOptions(): void {
  const [verb = 'serve'] = process.argv.slice(2)
  const isLong = verb === 'serve' || verb.startsWith('--') || longVerbs.includes(verb)
  if (!isLong || machineBytes <= memoryBytes) return
  if (longVerbs.includes(verb))
    restartWith({ ...smallOptions, BUN_JSC_smallHeapGrowthFactor: longVerbGrowth }, process.env, {})
  else restartWith(machineBytes < largeMemoryMin ? smallOptions : gcOptions, process.env, {})
}

/** The same for a node or a memory limit, which are known when the options of the server are read. */
export function restartAs({
  isNode,
  memoryLimitBytes,
}: {
  isNode: boolean
  memoryLimitBytes: number | null
}): void {
  if (machineBytes < largeMemoryMin) return
  if ((memoryLimitBytes ?? Infinity) < largeMemoryMin) restartWith(smallOptions, whole, gcOptions)
  else if (isNode) restartWith(nodeOptions, whole, gcOptions)
}

/** `replaced`: values that the first restart has set. */
function restartWith(options: Environment, environment: Environment, replaced: Environment): void {
  if (!Bun.isStandaloneExecutable) return
  const isOurs = (name: string) => [undefined, replaced[name]].includes(environment[name])
  const missing = Object.entries(options).filter(
    ([name, value]) => isOurs(name) && environment[name] !== value,
  )
  if (missing.length === 0) return
  const currentEntries = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  )
  try {
    const variables = Object.fromEntries([...currentEntries, ...missing]) as { [name: string]: string }
    process.execve?.(process.execPath, [process.argv0, ...process.argv.slice(2)], variables)
  } catch {
    return // the executable may be gone: continue without the options
  }
}

restartWithOptions()

// Elysia echoes bodies in development.
if (Bun.isStandaloneExecutable) Bun.env['NODE_ENV'] ??= 'production'

export type Environment = Record<string, string | undefined>

/** As the process got it. */
let whole: Environment = {}

/** The environment of a process that may be read, by default of this one, with more variables. */
export function environmentOf(
  pid: number | null,
  extraVariables: Record<string, string>,
): Record<string, string> {
  const ownEntries = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  return {
    ...Object.fromEntries(pid === null ? ownEntries : (environmentIn(`/proc/${pid}/environ`) ?? ownEntries)),
    ...extraVariables,
  }
}

function environmentIn(path: string): [name: string, value: string][] | null {
  try {
    const lines = readFileSync(path, 'utf8').split('\0')
    return lines.flatMap((line) => {
      const equalsIndex = line.indexOf('=')
      return equalsIndex <= 0 ? [] : [[line.slice(0, equalsIndex), line.slice(equalsIndex + 1)]]
    })
  } catch {
    return null // another system than Linux, or a process of somebody else
  }
}

const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY']

/**
 * Copies the environment, then removes from the process what must not have side effects: `fetch` obeys proxy variables
 * even for loopback, and child processes must not inherit `secrets`.
 */
export function isolateEnvironment(
  secrets: readonly string[],
  environment: Environment = process.env,
): Environment {
  const copy = { ...environment }
  whole = copy
  for (const name of proxyVariables) {
    delete environment[name]
    delete environment[name.toLowerCase()]
  }
  for (const name of secrets) delete environment[name]
  return copy
}
