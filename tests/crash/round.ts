/** Shared by all kill rounds: the killed program, and the check afterwards. */
import { join } from 'node:path'
import { bunProgram, run, type Running } from '../support/process.ts'

export interface Round {
  folder: string
  number: number
  killAfterMs: number // after the program has started its work, and after `begun`
  begun?(): Promise<void>
  restMs?: number // of the program between two batches
  env?: Record<string, string> // of the program
  /** Runs after the kill, before anything reads the folder. */
  afterwards?(): void
}

/** Expected in every round: nothing lost, nothing duplicated, no fault. */
export interface Found {
  acknowledged: number // events
  lost: number // of them
  doubled: number
  faults: string[]
}

export function startProgram(
  name: string,
  { folder, env }: Pick<Round, 'folder' | 'env'>,
  ...args: (string | number)[]
): Running {
  const command = [...bunProgram(join(import.meta.dir, name)), folder, ...args.map(String)]
  return run(command, { cwd: folder, env: { PATH: process.env['PATH'] ?? '', ...env } })
}

export async function killAfter(child: Running, delayMs: number): Promise<void> {
  await Bun.sleep(delayMs)
  child.signal('SIGKILL')
  await child.exited
}

/** Complete lines only: the last one may be cut off. */
export function wholeLines(child: Running): string[] {
  return child.stdout().split('\n').slice(0, -1)
}
