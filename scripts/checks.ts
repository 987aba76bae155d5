/** The static checks: format, types. `npm run check` and `npm test` run the same ones. */
import { command } from './command.ts'

export interface Check {
  name: string
  ok: boolean
  output: string
  durationMs: number
}

const bun = process.execPath

const checks: { name: string; args: string[] }[] = [
  { name: 'format', args: [bun, 'fmt', '--no-script', '--check'] },
  { name: 'types', args: [bun, 'check', '--no-script'] },
]

/** All at once: together they take less than a second. */
export function runChecks(): Promise<Check[]> {
  return Promise.all(
    checks.map(async ({ name, args }) => {
      const result = await command(args, { timeoutMs: 120_000 })
      return { name, ok: result.code === 0, output: result.output, durationMs: result.durationMs }
    }),
  )
}

/** One line for a check that passed, the whole output of one that failed. */
export function describeCheck({ name, ok, output, durationMs }: Check): string {
  const line = `${ok ? 'ok  ' : 'FAIL'} ${name} (${Math.round(durationMs)} ms)\n`
  return ok ? line : `${output.trimEnd()}\n${line}`
}
