/** The processor time of a fixed piece of work, beside which `npm test` reports that of its run. */
import { command } from './command.ts'

/** What tests do most: JavaScript that makes and compares objects, JSON, and hashes. It never changes. */
export function fixedWork(): string {
  const hash = new Bun.CryptoHasher('sha256')
  for (let round = 0; round < 60; round++) {
    const events = Array.from({ length: 1_000 }, (_, n) => ({
      id: `${round} ${n}`,
      tags: [n, n * 3],
      note: 'x'.repeat(99),
    }))
    const copies = JSON.parse(JSON.stringify(events)) as typeof events
    copies.sort((a, b) => (a.id < b.id ? -1 : 1))
    hash.update(JSON.stringify(copies))
  }
  return hash.digest('hex')
}

const measurements = 3

/** The median in seconds, each in a new process; null if the work cannot run. */
export async function measureFloor(): Promise<number | null> {
  const seconds: number[] = []
  for (let n = 0; n < measurements; n++) {
    const { code, cpuMs } = await command([process.execPath, import.meta.path], { timeoutMs: 120_000 })
    if (code !== 0) return null
    seconds.push(cpuMs / 1_000)
  }
  return seconds.toSorted((a, b) => a - b)[Math.floor(measurements / 2)]!
}

if (import.meta.main) process.stdout.write(`${fixedWork()}\n`)
