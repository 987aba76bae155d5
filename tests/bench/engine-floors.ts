/** The floors of the engine's bench: simpler stores that also write every tenth batch. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { basename } from 'node:path'
import type { EventRecord } from '../../db/contract/store.ts'
import { tempDir } from '../support/temp-dir.ts'
import { bareSqlite } from './floors.ts'
import { perSecond } from './report.ts'

export interface EngineFloors {
  /** Writes a batch durably with each floor. */
  take(events: EventRecord[]): void
  /** Sentences with rates, and the ratios of the engine's time per event to theirs. */
  report(engineMsPerEvent: number): string[]
  close(): void
}

/** `path` is the prefix of their file names. */
export function engineFloors(path: string): EngineFloors {
  const file = openSync(path, 'w')
  const sqlite = bareSqlite(`${path}.db`)
  let events = 0
  let jsonMs = 0
  let appendMs = 0
  let sqliteMs = 0
  return {
    take(batch) {
      const texts = batch.map(({ json }) => json)
      const values = texts.map((text) => JSON.parse(text) as unknown)
      events += batch.length
      jsonMs += msOf(() => values.map((value) => JSON.stringify(value)))
      appendMs += msOf(() => {
        writeSync(file, texts.join('\n'))
        fsyncSync(file)
      })
      sqliteMs += msOf(() => sqlite.append(texts))
    },
    report(engineMsPerEvent) {
      const engine = events * engineMsPerEvent
      const ratio = (floorMs: number, ofMs: number) => (floorMs / ofMs).toFixed(2)
      return [
        `bare append of texts that are there already: ${perSecond(events, appendMs)}, ratio ${ratio(appendMs, engine)}`,
        `bare append that makes them of values first: ${perSecond(events, jsonMs + appendMs)}, ` +
          `ratio ${ratio(jsonMs + appendMs, jsonMs + engine)} when the engine's are made so too`,
        `of a database that keeps packed texts and nothing else: ${perSecond(events, sqliteMs)}, ` +
          `itself ${ratio(appendMs, sqliteMs)} of the first`,
      ]
    },
    close() {
      closeSync(file)
      sqlite.close()
    },
  }
}

function msOf(work: () => unknown): number {
  const started = performance.now()
  work()
  return performance.now() - started
}

/** Runs the program of another engine, with a number of events, a batch size and a path, and returns its first line. */
export function otherEngine(program: string, events: number, batchEvents: number): string {
  using dir = tempDir('bench')
  const words = [program, String(events), String(batchEvents), dir.join('other.db')]
  const { stdout, exitCode } = Bun.spawnSync([process.execPath, ...words], { stderr: 'inherit' })
  if (exitCode !== 0) throw new Error(`${program} ended with exit code ${exitCode}`)
  return `${basename(program)}: ${stdout.toString().split('\n', 1)[0]}`
}
