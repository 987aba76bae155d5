/** Prints measurements as Markdown tables, and records the newest of each bench in `results.md`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'

export function table(head: string[], rows: (string | number)[][]): string {
  const line = (cells: (string | number)[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join(
    '\n',
  )
}

function cell(value: string | number): string {
  return typeof value === 'number' ? value.toLocaleString('en-US') : value
}

/** One line with date, cores, memory and Bun version. */
export function machine(): string {
  const cores = cpus()
  const memoryGiB = Math.round(totalmem() / 2 ** 30)
  const date = new Date().toISOString().slice(0, 10)
  return `${date}, ${cores.length} × ${cores[0]?.model.trim() ?? 'unknown core'}, ${memoryGiB} GiB, Bun ${Bun.version}`
}

/** Replaces the sections of `tests/bench/results.md` with this title by a new one at the end, with date and machine. */
export function recordTable(title: string, text: string): void {
  const file = join(import.meta.dir, 'results.md')
  const sections = readFileSync(file, 'utf8').split(/^(?=## )/m)
  const others = sections.filter((section) => !section.startsWith(`## ${title}:`))
  writeFileSync(file, `${others.join('').trimEnd()}\n\n## ${title}: ${machine()}\n\n${text}\n`)
}

export function perSecond(events: number, ms: number): string {
  return `${Math.round((events / ms) * 1_000).toLocaleString('en')}/s`
}

/** The current memory of a process. */
export function residentMiB(pid: number): number {
  const kibibytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kibibytes) / 1_024
}

export interface Memory {
  medianMiB: number
  mostMiB: number
}

/** Samples the memory of a process 10 times per second until it is stopped. */
export function watchMemory(pid: number): { end(): Memory } {
  const samples = [residentMiB(pid)]
  const timer = setInterval(() => samples.push(residentMiB(pid)), 100)
  return {
    end() {
      clearInterval(timer)
      const sorted = samples.toSorted((a, b) => a - b).map(Math.round)
      return { medianMiB: sorted[sorted.length >> 1]!, mostMiB: sorted.at(-1)! }
    },
  }
}

/** CPU time since boot in ticks: the total, and the steal time. */
function coresTime(): { all: number; stolen: number } | null {
  if (!existsSync('/proc/stat')) return null
  // user nice system idle iowait irq softirq steal; guest time is included in user
  const ticks = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .trim()
    .split(/\s+/)
    .slice(1, 9)
    .map(Number)
  return { all: ticks.reduce((sum, tick) => sum + tick, 0), stolen: ticks[7] ?? 0 }
}

/** Measures the steal time of the host in percent until it is stopped; null if the kernel does not report it. */
export function watchStolen(): { end(): number | null } {
  const from = coresTime()
  return {
    end() {
      const to = coresTime()
      if (from === null || to === null || to.all === from.all) return null
      return Math.round(((to.stolen - from.stolen) / (to.all - from.all)) * 100)
    },
  }
}

const ticksPerSecond = 100 // of Linux, for every architecture

/** Processor time of a process and its children since their start, ended ones included. 0 for one that has ended. */
export function processorSeconds(pid: number): number {
  if (!existsSync(`/proc/${pid}/task/${pid}/children`)) return 0
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const times = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // User and system time, and that of ended children.
  const ticks = times.slice(11, 15).reduce((total, tickText) => total + Number(tickText), 0)
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return children.reduce((total, child) => total + processorSeconds(Number(child)), ticks / ticksPerSecond)
}

const settledMs = 2_000

/** Waits until a server has no background work left: it used less than 2 % of a core for two seconds. */
export async function settled(pid: number, timeoutMs = 300_000): Promise<void> {
  for (const startMs = performance.now(); performance.now() - startMs < timeoutMs;) {
    const secondsBefore = processorSeconds(pid)
    await Bun.sleep(settledMs)
    if ((processorSeconds(pid) - secondsBefore) * 1_000 < settledMs / 50) return
  }
  throw new Error('the server was busy all the time')
}
