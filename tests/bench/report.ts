/** Prints measurements as Markdown tables and keeps them, dated and with the machine, in `results.md`. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
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

/** One line that says what measured: date, cores, memory, Bun. */
export function machine(): string {
  const cores = cpus()
  const memoryGiB = Math.round(totalmem() / 2 ** 30)
  const date = new Date().toISOString().slice(0, 10)
  return `${date}, ${cores.length} × ${cores[0]?.model.trim() ?? 'unknown core'}, ${memoryGiB} GiB, Bun ${Bun.version}`
}

/** Appends a dated section to `tests/bench/results.md`. */
export function recordTable(title: string, text: string): void {
  appendFileSync(join(import.meta.dir, 'results.md'), `\n## ${title}: ${machine()}\n\n${text}\n`)
}

export function perSecond(events: number, ms: number): string {
  return `${Math.round((events / ms) * 1_000).toLocaleString('en')}/s`
}

/** What a process holds in memory now. */
export function residentMiB(pid: number): number {
  const kibibytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kibibytes) / 1_024
}

export interface Memory {
  medianMiB: number
  mostMiB: number
}

/** Looks at a process' memory ten times a second until it is ended. */
export function watchMemory(pid: number): { end(): Memory } {
  const seen = [residentMiB(pid)]
  const timer = setInterval(() => seen.push(residentMiB(pid)), 100)
  return {
    end() {
      clearInterval(timer)
      const sorted = seen.toSorted((a, b) => a - b).map(Math.round)
      return { medianMiB: sorted[sorted.length >> 1]!, mostMiB: sorted.at(-1)! }
    },
  }
}

/** Cores' time since the machine started, in its ticks: all of it, and what the host gave to others instead. */
function coresTime(): { all: number; stolen: number } | null {
  if (!existsSync('/proc/stat')) return null
  // user nice system idle iowait irq softirq steal; what guests get is counted in user already
  const ticks = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .trim()
    .split(/\s+/)
    .slice(1, 9)
    .map(Number)
  return { all: ticks.reduce((sum, one) => sum + one, 0), stolen: ticks[7] ?? 0 }
}

/** Which percentage of the cores' time the host gives to other machines until it is ended; null where none says so. */
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
