/** Processor time of the descendants that nobody waits for, for `npm test`: resource usage leaves out Chromium's. */
import { readdirSync, readFileSync } from 'node:fs'

/** Processor times in milliseconds. */
export interface ProcessTime {
  pid: number
  parent: number
  /** Of the process itself. */
  ownMs: number
  /** Of the children that it waited for. */
  waitedMs: number
}

const msPerTick = 10 // Linux reports ticks of 1/100 s on every architecture

/** Parses a line of `/proc/PID/stat`; the name in parentheses may contain spaces and parentheses. */
export function parseStat(line: string): ProcessTime {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const ticks = (index: number): number => Number(fields[index]) * msPerTick
  return {
    pid: Number.parseInt(line, 10),
    parent: Number(fields[1]),
    ownMs: ticks(11) + ticks(12),
    waitedMs: ticks(13) + ticks(14),
  }
}

/** All processes of the machine. None without `/proc`, as on macOS. */
export function readProcesses(): ProcessTime[] {
  const pids = process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d/.test(name)) : []
  return pids.flatMap((pid) => {
    try {
      return [parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))]
    } catch {
      return [] // it ended meanwhile
    }
  })
}

export interface ProcessTree {
  sample(processes: ProcessTime[]): void
  /** Call when the root ended, with its resource usage. Returns the processor time of the whole tree. */
  end(usageMs: number): number
}

/**
 * The descendants of the process `root`. A process that ends adds its time to its parent's, if the parent waits for it.
 * The time of the others is lost: samples find it, because no parent's `waitedMs` grows by it when they end.
 */
export function processTree(root: number): ProcessTree {
  let lastSample = new Map<number, ProcessTime>()
  let lostMs = 0
  /** Adds the processes that ended since the last sample, less what their parents waited for. */
  const lose = (living: Map<number, ProcessTime>, waitedMs: number): void => {
    const ended = [...lastSample.values()].filter(({ pid }) => !living.has(pid))
    const endedMs = ended.reduce((sum, { ownMs, waitedMs: children }) => sum + ownMs + children, 0)
    lostMs += Math.max(0, endedMs - Math.max(0, waitedMs))
  }
  return {
    sample(processes) {
      const living = descendants(processes, (pid) => pid === root || lastSample.has(pid))
      let waitedMs = 0
      for (const { pid, waitedMs: now } of living.values())
        waitedMs += now - (lastSample.get(pid)?.waitedMs ?? now)
      lose(living, waitedMs)
      lastSample = living
    },
    end(usageMs) {
      const last = lastSample.get(root)
      lastSample.delete(root)
      lose(new Map(), usageMs - (last === undefined ? 0 : last.ownMs + last.waitedMs))
      return usageMs + lostMs
    },
  }
}

/** The processes that belong to a tree, and their descendants. One found before may have lost its parent. */
function descendants(processes: ProcessTime[], belongs: (pid: number) => boolean): Map<number, ProcessTime> {
  const living = new Map<number, ProcessTime>()
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const add = (descendant: ProcessTime): void => {
    if (living.has(descendant.pid)) return
    living.set(descendant.pid, descendant)
    for (const child of children.get(descendant.pid) ?? []) add(child)
  }
  for (const candidate of processes) if (belongs(candidate.pid)) add(candidate)
  return living
}

const sampleMs = 1_000 // reading 150 processes costs 3 ms, and twice that on a busy machine
const trees = new Set<ProcessTree>()
let timer: ReturnType<typeof setInterval> | undefined

/** Samples the descendants of a process until the returned function is called with its resource usage. */
export function watchProcess(pid: number): (usageMs: number) => number {
  const tree = processTree(pid)
  trees.add(tree)
  timer ??= setInterval(() => {
    const processes = readProcesses()
    for (const watchedTree of trees) watchedTree.sample(processes)
  }, sampleMs)
  return (usageMs) => {
    trees.delete(tree)
    if (trees.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
    return tree.end(usageMs)
  }
}
