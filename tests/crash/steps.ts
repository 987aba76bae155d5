/** Runs a process with its file operations numbered (`steps.c`), to kill it or fail one of them. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { bunProgram } from '../support/process.ts'

export interface StepsWanted {
  library: string
  under: string // only paths that contain it count
  log: string // a file for the steps
  program: string
  args: string[]
  hit?: Hit
}

export interface Hit {
  /** Number of the step, among those of `only` when that is given. */
  at: number
  how: 'kill' | number // a number: errno
  times?: number
  /** A call, and the end of its path. */
  only?: [name: string, path: string]
}

export interface Stepped {
  steps: string[]
  code: number | null // null: killed
  stderr: string
}

export async function runSteps({
  library,
  under: watchedFolder,
  log,
  program,
  args,
  hit,
}: StepsWanted): Promise<Stepped> {
  rmSync(log, { force: true })
  const hitEnv =
    hit === undefined
      ? {}
      : { STEPS_AT: String(hit.at), STEPS_HOW: String(hit.how), STEPS_TIMES: String(hit.times ?? 1) }
  const only = hit?.only === undefined ? {} : { STEPS_NAME: hit.only[0], STEPS_PATH: hit.only[1] }
  const child = Bun.spawn([...bunProgram(program), ...args], {
    env: {
      ...process.env,
      LD_PRELOAD: library,
      STEPS_UNDER: watchedFolder,
      STEPS_LOG: log,
      ...hitEnv,
      ...only,
    },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const stderr = await new Response(child.stderr).text()
  await child.exited
  const steps = existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []
  return { steps, code: child.exitCode, stderr }
}
